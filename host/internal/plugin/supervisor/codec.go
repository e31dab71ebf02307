package supervisor

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxElements bounds the messages and the items of lists in one message of a
// plugin, those within others too. An empty one takes 2 bytes of the wire and a
// hundred times that in memory.
const maxElements = 20_000

// codec is gRPC's own codec, except that it looks at a message of a plugin
// before it makes objects of it.
type codec struct {
	encoding.CodecV2

	turns chan struct{} // a place for each large message that is decoded
}

const (
	// largeMessage is the size from which messages take turns: each is in memory
	// three times while it is decoded.
	largeMessage = 64 << 10
	// maxDecoding is how many large messages of a process are decoded at a time.
	maxDecoding = 2
)

func newCodec() codec {
	return codec{encoding.GetCodecV2(grpcproto.Name), make(chan struct{}, maxDecoding)}
}

// answer is where a plugin's message goes. err is why it was not decoded: gRPC
// would keep no more of an error than its text.
type answer struct {
	message proto.Message
	err     error
}

// Unmarshal implements [encoding.CodecV2].
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if data.Len() > largeMessage {
		c.turns <- struct{}{} // nothing that has a turn waits for anything
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

// decode makes a message of what a plugin has sent. Its errors are
// errNonsense.
func decode(data []byte, m proto.Message) error {
	left := maxElements
	if err := countElements(data, m.ProtoReflect().Descriptor(), &left); err != nil {
		return fmt.Errorf("%w: %w", errNonsense, err)
	}
	// Fields of a later version of the contract are not for this host.
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, m); err != nil {
		return fmt.Errorf("%w: it sent a message that cannot be decoded", errNonsense)
	}
	return nil
}

// countElements takes the elements of a message from what is left of those
// that are allowed. The depth is that of the contract's types, none of which
// holds itself.
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
