package process

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxElements bounds the messages and list items in one message of a plugin, including nested
// ones. An empty message takes 2 bytes on the wire and a hundred times as many in memory.
const maxElements = 20_000

// codec is gRPC's own codec, except that it checks a message of a plugin before it
// decodes the message into objects.
type codec struct {
	encoding.CodecV2

	turns chan struct{} // limits the large messages that are decoded at once
}

const (
	// largeMessage is the size above which messages take turns, in bytes: each is in
	// memory three times while it is decoded.
	largeMessage = 64 << 10
	// maxDecoding is the number of large messages of a process that are decoded at
	// the same time.
	maxDecoding = 2
)

func newCodec() codec {
	return codec{encoding.GetCodecV2(grpcproto.Name), make(chan struct{}, maxDecoding)}
}

// answer receives a message of a plugin. err is the reason if it was not decoded:
// gRPC would keep only the text of an error.
type answer struct {
	message proto.Message
	err     error
}

// Unmarshal implements [encoding.CodecV2].
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if data.Len() > largeMessage {
		c.turns <- struct{}{} // decoding waits for nothing, so this ends
		defer func() { <-c.turns }()
	}
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	switch v := v.(type) {
	case *answer:
		v.err = decode(buffer.ReadOnlyData(), v.message)
		return nil
	case proto.Message:
		return decode(buffer.ReadOnlyData(), v)
	}
	return fmt.Errorf("cannot decode a %T", v)
}

// decode decodes a message of a plugin. Its errors are errNonsense.
func decode(data []byte, m proto.Message) error {
	left := maxElements
	if err := countElements(data, m.ProtoReflect().Descriptor(), &left); err != nil {
		return fmt.Errorf("%w: %w", errNonsense, err)
	}
	// This host does not know the fields of a later version of the contract.
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, m); err != nil {
		return fmt.Errorf("%w: it sent a message that cannot be decoded", errNonsense)
	}
	return nil
}

// countElements subtracts the elements of a message from left, the number still
// allowed. The recursion is bounded: no type of the contract contains itself.
func countElements(data []byte, d protoreflect.MessageDescriptor, left *int) error {
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		size := protowire.ConsumeFieldValue(number, wire, data)
		if size < 0 {
			return protowire.ParseError(size)
		}
		field := d.Fields().ByNumber(number)
		if field != nil && (field.IsList() || field.Message() != nil) {
			if *left--; *left < 0 {
				return fmt.Errorf("it sent a message of more than %d elements", maxElements)
			}
		}
		if field != nil && field.Message() != nil && wire == protowire.BytesType {
			inner, _ := protowire.ConsumeBytes(data)
			if err := countElements(inner, field.Message(), left); err != nil {
				return err
			}
		}
		data = data[size:]
	}
	return nil
}
