package supervisor

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/grpc"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
)

// requester is the test plugin's way to the host.
type requester struct {
	mu      sync.Mutex // guards everything below, and sends one message at a time
	stream  connectedStream
	last    uint64
	waiting map[uint64]chan *toolpluginv1.HostMessage
	tickets map[string][]byte // of the calls of "ask", by their ids
}

type connectedStream = grpc.BidiStreamingServer[toolpluginv1.HostMessage, toolpluginv1.PluginMessage]

// serve hands the host's answers to the calls that wait for them.
func (q *requester) serve(stream connectedStream) error {
	q.mu.Lock()
	q.stream, q.waiting, q.tickets = stream, map[uint64]chan *toolpluginv1.HostMessage{}, map[string][]byte{}
	q.mu.Unlock()
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	for {
		answer, err := stream.Recv()
		if err != nil {
			return err
		}
		q.mu.Lock()
		q.waiting[answer.GetId()] <- answer
		q.mu.Unlock()
	}
}

// deafen asks forever and reads no answer.
func deafen(stream connectedStream) error {
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	for id := uint64(1); ; id++ {
		err := stream.Send(&toolpluginv1.PluginMessage{Id: id, Request: &toolpluginv1.PluginMessage_Secret{
			Secret: &toolpluginv1.SecretRequest{Name: "key"},
		}})
		if err != nil {
			return err
		}
	}
}

// request sends a question and returns the channel for its answer.
func (q *requester) request(ticket []byte, question, schema string) chan *toolpluginv1.HostMessage {
	return q.send(&toolpluginv1.PluginMessage{Ticket: ticket, Request: &toolpluginv1.PluginMessage_AskUser{
		AskUser: &toolpluginv1.AskUserRequest{Question: question, SchemaJson: []byte(schema)},
	}})
}

// secret asks for a secret and returns the channel for its value.
func (q *requester) secret(ticket []byte, name string) chan *toolpluginv1.HostMessage {
	return q.send(&toolpluginv1.PluginMessage{Ticket: ticket, Request: &toolpluginv1.PluginMessage_Secret{
		Secret: &toolpluginv1.SecretRequest{Name: name},
	}})
}

func (q *requester) send(m *toolpluginv1.PluginMessage) chan *toolpluginv1.HostMessage {
	answer := make(chan *toolpluginv1.HostMessage, 1)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last++
	q.waiting[q.last] = answer
	m.Id = q.last
	must(q.stream.Send(m))
	return answer
}

// tell runs a tool that sends something to the host.
func (q *requester) tell(r *toolpluginv1.CallRequest, stream callStream) error {
	if r.GetTool() == "change" {
		return q.change(r, stream)
	}
	return q.ask(r, stream)
}

// askArgs are those of the tool "ask".
type askArgs struct {
	Ticket   string // "" for the call's own; "none"; "forged"; "short"; otherwise the id of another call
	Raw      []byte // a ticket of another process
	Question int    // bytes of it
	Schema   int
	Twice    bool   // another one before the first is answered
	Times    int    // how often
	Secret   string // asks for a secret of this name instead
	Hold     bool   // sends its ticket after it has asked, and stays until the call is canceled
}

// ask returns the host's answer to one question or several: the code of the error, or the
// answer.
func (q *requester) ask(r *toolpluginv1.CallRequest, stream callStream) error {
	var args askArgs
	must(json.Unmarshal(r.GetArgumentsJson(), &args))
	own := r.GetContext().GetTicket()
	ticket := own
	q.mu.Lock()
	q.tickets[r.GetContext().GetCallId()] = own
	switch args.Ticket {
	case "":
	case "none":
		ticket = nil
	case "forged":
		ticket = make([]byte, 32)
	case "short":
		ticket = own[:32-1]
	default:
		ticket = q.tickets[args.Ticket]
	}
	q.mu.Unlock()
	if args.Raw != nil {
		ticket = args.Raw
	}
	if args.Secret != "" {
		return text(stream, tell(<-q.secret(ticket, args.Secret)))
	}
	var said []string
	for range max(1, args.Times) {
		first := q.request(ticket, strings.Repeat("q", max(1, args.Question)), strings.Repeat(" ", args.Schema))
		if args.Twice {
			said = append(said, tell(<-q.request(ticket, "second", "")))
			must(stream.Send(chunk([]byte("inside"))))
		}
		said = append(said, tell(<-first))
	}
	if args.Hold {
		if err := stream.Send(chunk(own)); err != nil {
			return err // the call has ended
		}
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	return text(stream, strings.Join(said, "\n"))
}

// change sends each list of tools of the arguments as a change, and returns the host's answers. If the
// argument "unread" is set, it waits for none.
func (q *requester) change(r *toolpluginv1.CallRequest, stream callStream) error {
	var args struct {
		Lists  [][]string
		Unread bool
	}
	must(json.Unmarshal(r.GetArgumentsJson(), &args))
	var answers []chan *toolpluginv1.HostMessage
	for _, list := range args.Lists {
		changed := new(toolpluginv1.ToolsChanged)
		for _, name := range list {
			changed.Tools = append(changed.Tools, &toolpluginv1.Tool{Name: name, Description: "x", Tier: toolpluginv1.Tier_TIER_READ_ONLY, InputSchemaJson: []byte(`{"type":"object"}`)})
		}
		answers = append(answers, q.send(&toolpluginv1.PluginMessage{Request: &toolpluginv1.PluginMessage_ToolsChanged{ToolsChanged: changed}}))
	}
	var said []string
	for _, answer := range answers {
		if !args.Unread {
			said = append(said, tell(<-answer))
		}
	}
	return text(stream, strings.Join(said, "\n"))
}

func tell(m *toolpluginv1.HostMessage) string {
	if e := m.GetError(); e != nil {
		return e.GetCode() + ": " + e.GetMessage()
	}
	if secret := m.GetSecret(); secret != nil {
		return "secret " + string(secret.GetValue())
	}
	return fmt.Sprint(m.GetAskUser().GetAnswered(), " ", string(m.GetAskUser().GetAnswerJson()))
}
