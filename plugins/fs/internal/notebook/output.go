package notebook

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/toolhost/toolhost/sdk/display"
)

// output is one output of a cell.
type output struct {
	kind, name, text string
	length           int       // of the whole text
	failure          [2]string // name and value of an error
	others           strings.Builder
}

// addOutput adds an output to those of the cell, if it fits.
func (c *cell) addOutput(v *values, where string) error {
	if c.outputs.Len() > maxOutputs {
		c.more++
		return v.skip()
	}
	var o output
	err := v.fields(where, func(name string) (err error) {
		switch name {
		case "output_type":
			o.kind, _, err = v.text(where+".output_type", maxName)
		case "name":
			o.name, _, err = v.text(where+".name", maxName)
		case "text", "traceback":
			o.text, o.length, err = v.text(where+"."+name, maxOutput)
		case "ename":
			o.failure[0], _, err = v.text(where+"."+name, maxName)
		case "evalue":
			o.failure[1], _, err = v.text(where+"."+name, maxOutput)
		case "data":
			err = v.fields(where+".data", func(mediaType string) error { return o.addData(v, where+".data", mediaType) })
		default:
			err = v.skip()
		}
		return err
	})
	o.write(&c.outputs)
	return err
}

// addData reads the form of an output in one media type. Plain text is shown.
func (o *output) addData(v *values, where, mediaType string) (err error) {
	if mediaType == "text/plain" {
		o.text, o.length, err = v.text(where+`["text/plain"]`, maxOutput)
		return err
	}
	size, err := v.size(isBase64(mediaType))
	if o.others.Len() <= maxOutput {
		fmt.Fprintf(&o.others, "[output: %s, %s]\n", display.Cut(display.VisibleName(mediaType), maxName), display.Plural(size, "byte"))
	}
	return err
}

// isBase64 reports whether notebooks hold the media type in base64.
func isBase64(mediaType string) bool {
	kind, _, _ := strings.Cut(mediaType, "/")
	return mediaType != "image/svg+xml" && (kind == "image" || kind == "audio" || kind == "video") || mediaType == "application/pdf"
}

// escapes are the sequences that color the output of a terminal.
var escapes = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)

// write writes the output.
func (o *output) write(to *strings.Builder) {
	heading := "output"
	switch {
	case o.kind == "error":
		heading = "error"
	case o.kind == "stream" && o.name == "stderr":
		heading = "stderr"
	}
	if o.text == "" {
		o.text = strings.TrimPrefix(strings.TrimSuffix(strings.Join(o.failure[:], ": "), ": "), ": ")
		o.length = len(o.text)
	}
	if o.text != "" {
		fmt.Fprintf(to, "[%s]\n", heading)
		more := o.length - len(o.text)
		text := escapes.ReplaceAllString(o.text, "")
		writeText(to, text, len(text)+more)
	}
	to.WriteString(o.others.String())
}
