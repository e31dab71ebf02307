package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

// weather is structured content.
type weather struct {
	City    string  `json:"city" jsonschema:"where it was measured"`
	Degrees float64 `json:"degrees" jsonschema:"the temperature, in degrees Celsius"`
}

// addContents adds a tool for each kind of content.
func addContents(p *sdk.Plugin) {
	for _, t := range []struct {
		name, description string
		content           []tool.Content
	}{
		{"test_simple_text", "Answers with a text.", []tool.Content{tool.Text("This is a simple text response for testing.")}},
		{"test_image_content", "Answers with an image.", []tool.Content{redPixel()}},
		{"test_audio_content", "Answers with a sound.", []tool.Content{silence()}},
		{"test_embedded_resource", "Answers with a resource.", []tool.Content{{
			Kind: tool.KindResource, URI: "test://embedded-resource", MediaType: "text/plain",
			Data: []byte("This is an embedded resource content."),
		}}},
		{"test_multiple_content_types", "Answers with a text, an image and a resource.", []tool.Content{
			tool.Text("Multiple content types test:"),
			redPixel(),
			{
				Kind: tool.KindResource, URI: "test://mixed-content-resource", MediaType: "application/json",
				Data: []byte(`{"test":"data","value":123}`),
			},
		}},
	} {
		add(p, t.name, t.description, func(context.Context, *sdk.Call, none) (tool.Result, error) {
			return tool.Result{Content: t.content}, nil
		})
	}
	// The suite has no scenario for it; the inspector is given it.
	sdk.AddTool(p, tool.Spec{Name: "test_structured_content", Tier: tool.ReadOnly, Description: "Answers with structured content."},
		func(context.Context, *sdk.Call, none) (weather, error) {
			return weather{City: "Vienna", Degrees: 21.5}, nil
		})
}

// redPixel is the smallest image.
func redPixel() tool.Content {
	pixel := image.NewRGBA(image.Rect(0, 0, 1, 1))
	pixel.Set(0, 0, color.RGBA{R: 255, A: 255})
	var out bytes.Buffer
	_ = png.Encode(&out, pixel) // a buffer takes everything
	return tool.Content{Kind: tool.KindImage, MediaType: "image/png", Data: out.Bytes()}
}

// silence is a WAV file with eight samples, 8 kHz, one channel of 8 bits.
func silence() tool.Content {
	samples := bytes.Repeat([]byte{128}, 8)
	var out bytes.Buffer
	out.WriteString("RIFF")
	_ = binary.Write(&out, binary.LittleEndian, uint32(36+len(samples)))
	out.WriteString("WAVEfmt ")
	_ = binary.Write(&out, binary.LittleEndian, struct {
		Size           uint32
		Format, Tracks uint16
		Rate, Bytes    uint32
		Block, Bits    uint16
	}{16, 1, 1, 8000, 8000, 1, 8})
	out.WriteString("data")
	_ = binary.Write(&out, binary.LittleEndian, uint32(len(samples)))
	out.Write(samples)
	return tool.Content{Kind: tool.KindAudio, MediaType: "audio/wav", Data: out.Bytes()}
}
