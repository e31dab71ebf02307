package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"google.golang.org/grpc"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxQuestion and maxForm bound the bytes of a question and of the schema of
	// its answer.
	maxQuestion = 4 << 10
	maxForm     = 16 << 10
	// maxUnread bounds the answers that a plugin has not read. The sdk never has
	// more requests than half as many.
	maxUnread = 512
)

// errUnread ends the channel of a plugin that asks and does not read.
var errUnread = errors.New("did not read the answers to its requests")

// connect answers the plugin's requests until the stream ends. It calls
// attached when the plugin has taken up the stream, or never will. It reads on
// while users are asked and answers are sent: the stream's end tells of a crash.
func (w *wire) connect(ctx context.Context, attached func()) error {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := w.client.Connect(ctx)
	if err == nil {
		_, err = stream.Header()
	}
	attached()
	if err != nil {
		cancel()
		return err
	}
	replies := make(chan *toolpluginv1.HostMessage, maxUnread) // full: the channel ends
	var answering sync.WaitGroup
	defer answering.Wait()
	defer cancel()
	answering.Go(func() { sendReplies(ctx, stream, replies) }) // ends with ctx
	// One question at a time of each call, and so as many goroutines at most.
	return w.answerRequests(ctx, stream, replies, &answering)
}

type connectStream = grpc.BidiStreamingClient[toolpluginv1.HostMessage, toolpluginv1.PluginMessage]

func sendReplies(ctx context.Context, stream connectStream, replies <-chan *toolpluginv1.HostMessage) {
	for {
		select {
		case reply := <-replies:
			if stream.Send(reply) != nil {
				return // the reader learns why
			}
		case <-ctx.Done():
			return
		}
	}
}

// answerRequests reads the plugin's requests until the stream ends.
func (w *wire) answerRequests(ctx context.Context, stream connectStream, replies chan<- *toolpluginv1.HostMessage, answering *sync.WaitGroup) error {
	for {
		request, err := stream.Recv()
		if err != nil {
			return err
		}
		reply := &toolpluginv1.HostMessage{Id: request.GetId()}
		if wanted := request.GetSecret(); wanted != nil {
			value, refused := w.secret(request.GetTicket(), wanted.GetName())
			if reply.Error = errorTo(refused); refused == nil {
				reply.Reply = &toolpluginv1.HostMessage_Secret{Secret: &toolpluginv1.SecretReply{Value: []byte(value)}}
			}
			if !offer(replies, reply) {
				return errUnread
			}
			continue
		}
		if part := request.GetMayRun(); part != nil { // it waits for nobody
			if reply.Error = errorTo(w.mayRun(request.GetTicket(), part)); reply.Error == nil {
				reply.Reply = &toolpluginv1.HostMessage_MayRun{MayRun: &toolpluginv1.MayRunReply{}}
			}
			if !offer(replies, reply) {
				return errUnread
			}
			continue
		}
		ask, done, refused := w.admit(request)
		if refused == nil {
			q := tool.Question{
				Text:   request.GetAskUser().GetQuestion(),
				Schema: json.RawMessage(request.GetAskUser().GetSchemaJson()),
			}
			answering.Go(func() { // ends with the call or with ctx
				answer, err := ask(ctx, q)
				done()
				select {
				case replies <- answerReply(reply, answer, err):
				case <-ctx.Done():
				}
			})
			continue
		}
		reply.Error = errorTo(refused)
		if !offer(replies, reply) {
			return errUnread
		}
	}
}

// offer hands over a reply, unless too many wait already.
func offer(replies chan<- *toolpluginv1.HostMessage, reply *toolpluginv1.HostMessage) bool {
	select {
	case replies <- reply:
		return true
	default:
		return false
	}
}

// secret returns the value of a secret that the plugin was granted, to a call that
// runs.
func (w *wire) secret(ticket []byte, name string) (string, *tool.Error) {
	value, granted := w.secrets[name]
	if !granted {
		return "", tool.Errorf(tool.PermissionDenied, "the plugin was not granted a secret %s", tool.VisibleName(name)).
			WithHint("the administrator makes a secret block of this name, and lists it under secrets in the plugin's block")
	}
	if refused := w.tickets.check(ticket); refused != nil {
		return "", refused
	}
	return value, nil
}

// mayRun judges one execution of a command.
func (w *wire) mayRun(ticket []byte, part *toolpluginv1.MayRunRequest) *tool.Error {
	return w.tickets.judge(ticket, tool.Execution{
		Argv: part.GetArgv(), Environment: part.GetEnvironment(), Directory: part.GetDirectory(), File: part.GetFile(), Write: part.GetWrite(),
	})
}

// admit refuses what no call may ask for, or not now.
func (w *wire) admit(request *toolpluginv1.PluginMessage) (ask asking, done func(), refused *tool.Error) {
	question := request.GetAskUser()
	text, form := len(question.GetQuestion()), len(question.GetSchemaJson())
	switch {
	case question == nil: // changes of the tools
		return nil, nil, tool.Errorf(tool.Unavailable, "this host does not answer such requests of plugins")
	case text > maxQuestion || form > maxForm:
		return nil, nil, tool.Errorf(tool.ResourceExhausted, "the question has %d bytes and its schema %d, more than the %v and %v that are allowed",
			text, form, tool.ByteSize(maxQuestion), tool.ByteSize(maxForm)).
			WithHint("ask a person for less at once")
	}
	return w.tickets.take(request.GetTicket())
}

func answerReply(reply *toolpluginv1.HostMessage, answer tool.Answer, err error) *toolpluginv1.HostMessage {
	if err != nil {
		reply.Error = errorTo(tool.AsError(err))
		return reply
	}
	said := &toolpluginv1.AskUserReply{Answered: answer.Given}
	if answer.Given {
		said.AnswerJson = answer.Values
	}
	reply.Reply = &toolpluginv1.HostMessage_AskUser{AskUser: said}
	return reply
}

// errorTo is an error as a plugin reads it, without its cause; nil is none.
func errorTo(e *tool.Error) *toolpluginv1.Error {
	if e == nil {
		return nil
	}
	return &toolpluginv1.Error{Code: string(e.Code), Message: e.Message, Retryable: e.Retryable, Hint: e.Hint}
}
