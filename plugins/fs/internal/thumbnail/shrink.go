package thumbnail

import (
	"image"
	"image/color"
)

// shrink returns the image with sides of at most side. Each pixel is the mean of those that it
// takes the place of.
func shrink(m image.RGBA64Image, side int) *image.RGBA {
	from := m.Bounds()
	width, height := fit(from.Dx(), from.Dy(), side)
	small := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		top, bottom := from.Min.Y+y*from.Dy()/height, from.Min.Y+(y+1)*from.Dy()/height
		for x := range width {
			left, right := from.Min.X+x*from.Dx()/width, from.Min.X+(x+1)*from.Dx()/width
			small.SetRGBA(x, y, mean(m, image.Rect(left, top, right, bottom)))
		}
	}
	return small
}

// fit returns the width and height of an image whose sides are at most side, in proportion.
func fit(width, height, side int) (fittedWidth, fittedHeight int) {
	longer := max(width, height)
	if longer <= side {
		return width, height
	}
	return max(width*side/longer, 1), max(height*side/longer, 1)
}

// mean returns the mean color of a part of an image, which is not empty.
func mean(m image.RGBA64Image, part image.Rectangle) color.RGBA {
	var r, g, b, a uint64
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			c := m.RGBA64At(x, y) // alpha-premultiplied, so that the sum is right
			r, g, b, a = r+uint64(c.R), g+uint64(c.G), b+uint64(c.B), a+uint64(c.A)
		}
	}
	n := uint64(part.Dx() * part.Dy())
	return color.RGBA{R: uint8(r / n >> 8), G: uint8(g / n >> 8), B: uint8(b / n >> 8), A: uint8(a / n >> 8)}
}
