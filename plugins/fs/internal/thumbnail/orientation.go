package thumbnail

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
)

// maxHead is how much of a JPEG is read to find its orientation.
const maxHead = 128 << 10

// orientation returns how a JPEG is turned, from its beginning: 1 to 8, as Exif numbers them.
// A camera stores that instead of turning the image, and a thumbnail does not keep it.
func orientation(head []byte) int {
	if !bytes.HasPrefix(head, []byte("\xFF\xD8")) {
		return 1
	}
	for head = head[2:]; len(head) > 4 && head[0] == 0xFF; {
		size := 2 + int(binary.BigEndian.Uint16(head[2:]))
		if size > len(head) {
			break
		}
		if data, ok := bytes.CutPrefix(head[4:max(size, 4)], []byte("Exif\x00\x00")); ok && head[1] == 0xE1 {
			return exifOrientation(data)
		}
		head = head[size:]
	}
	return 1
}

// exifOrientation returns the orientation in the first directory of Exif data.
func exifOrientation(data []byte) int {
	const tag, entrySize = 0x0112, 12
	if len(data) < 8 {
		return 1
	}
	var order binary.ByteOrder = binary.BigEndian
	if data[0] == 'I' {
		order = binary.LittleEndian
	}
	at := int64(order.Uint32(data[4:]))
	if at+2 > int64(len(data)) {
		return 1
	}
	entries := data[at+2:]
	for range order.Uint16(data[at:]) {
		if len(entries) < entrySize {
			break
		}
		if value := order.Uint16(entries[8:]); order.Uint16(entries) == tag && value >= 1 && value <= 8 {
			return int(value)
		}
		entries = entries[entrySize:]
	}
	return 1
}

// turned is an image as it is to be seen.
type turned struct {
	image.RGBA64Image
	orientation int
}

// Bounds implements [image.Image].
func (t turned) Bounds() image.Rectangle {
	size := t.RGBA64Image.Bounds().Size()
	if t.orientation >= 5 {
		size.X, size.Y = size.Y, size.X
	}
	return image.Rectangle{Max: size}
}

// RGBA64At implements [image.RGBA64Image].
func (t turned) RGBA64At(x, y int) color.RGBA64 {
	from := t.RGBA64Image.Bounds()
	right, bottom := from.Dx()-1, from.Dy()-1
	switch t.orientation {
	case 2:
		x = right - x
	case 3:
		x, y = right-x, bottom-y
	case 4:
		y = bottom - y
	case 5:
		x, y = y, x
	case 6:
		x, y = y, bottom-x
	case 7:
		x, y = right-y, bottom-x
	case 8:
		x, y = right-y, x
	}
	return t.RGBA64Image.RGBA64At(from.Min.X+x, from.Min.Y+y)
}
