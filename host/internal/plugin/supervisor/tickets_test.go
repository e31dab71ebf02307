package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// askWith runs the tool "ask" of a plugin in a call, whose user answers as ask
// does.
func (k *kept) askWith(t *testing.T, plugin, id string, args askArgs, sink tool.Sink) (string, error) {
	t.Helper()
	return k.askFor(t, tool.Context{}, plugin, id, args, sink)
}

// askFor is askWith for a caller.
func (k *kept) askFor(t *testing.T, caller tool.Context, plugin, id string, args askArgs, sink tool.Sink) (string, error) {
	t.Helper()
	encoded, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	result, _, err := k.Run(t.Context(), plugin, "", tool.Call{ID: id, Tool: "ask", Arguments: encoded, Context: caller}, sink)
	return result.Text(), err
}

// yes is a user who answers every question alike.
func yes(context.Context, tool.Question) (tool.Answer, error) {
	return tool.Answer{Given: true, Values: []byte(`{"a":1}`)}, nil
}

func TestAskUser(t *testing.T) {
	k := keep(t, "asking")
	for _, tt := range []struct {
		name string
		args askArgs
		ask  func(context.Context, tool.Question) (tool.Answer, error)
		want string // the prefix of the plugin's answer
	}{
		{"answered", askArgs{}, yes, `true {"a":1}`},
		{"declined", askArgs{}, func(context.Context, tool.Question) (tool.Answer, error) { return tool.Answer{}, nil }, "false "},
		{"an error for tools", askArgs{}, func(context.Context, tool.Question) (tool.Answer, error) {
			return tool.Answer{}, tool.Errorf(tool.Unavailable, "nobody is there")
		}, "unavailable: nobody is there"},
		{"an error for the log", askArgs{}, func(context.Context, tool.Question) (tool.Answer, error) {
			return tool.Answer{}, errors.New("disk /dev/sda is broken")
		}, "internal: internal error"},
		{"nobody can be asked", askArgs{}, nil, "unavailable: the user cannot be asked on behalf of this call"},
		{"no ticket", askArgs{Ticket: "none"}, yes, "unavailable: the user cannot be asked"},
		{"a forged ticket", askArgs{Ticket: "forged"}, yes, "permission_denied: the ticket belongs to no running call"},
		{"a cut ticket", askArgs{Ticket: "short"}, yes, "permission_denied: "},
		{"a long one", askArgs{Raw: make([]byte, 32+1)}, yes, "permission_denied: "},
		{"as long as it may be", askArgs{Question: (4 << 10), Schema: (16 << 10)}, yes, "true "},
		{"too long a question", askArgs{Question: (4 << 10) + 1}, yes, "resource_exhausted: the question has 4097 bytes"},
		{"too long a schema", askArgs{Schema: (16 << 10) + 1}, yes, "resource_exhausted: "},
		{
			"too many questions",
			askArgs{Times: 8 + 1},
			yes,
			strings.Repeat("true {\"a\":1}\n", 8) + "resource_exhausted: the call has asked its user 8 times",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := k.askWith(t, "asking", "tc_1", tt.args, tool.Sink{Ask: tt.ask})
			if err != nil || !strings.HasPrefix(got, tt.want) {
				t.Errorf("the plugin heard %q, %v; want %q", got, err, tt.want)
			}
		})
	}
	var asked tool.Question
	if _, err := k.askWith(t, "asking", "tc_1", askArgs{Question: 3, Schema: 2}, tool.Sink{Ask: func(_ context.Context, q tool.Question) (tool.Answer, error) {
		asked = q
		return tool.Answer{}, nil
	}}); err != nil || asked.Text != "qqq" || string(asked.Schema) != "  " {
		t.Errorf("the user was asked %+v, %v", asked, err)
	}
}

// TestSecrets asks for secrets: a plugin gets only those that it was granted, and only during
// one of its own calls.
func TestSecrets(t *testing.T) {
	granted := map[string]string{"key": "s3cr3t-value"}
	k := keepPlugins(t,
		Plugin{Name: "asking", Path: program(t, "asking"), Confinement: plain, Limits: sandbox.DefaultLimits(), Secrets: granted},
		Plugin{Name: "asking2", Path: program(t, "asking2"), Confinement: plain, Limits: sandbox.DefaultLimits()},
	)
	for _, tt := range []struct {
		name, plugin string
		args         askArgs
		ask          func(context.Context, tool.Question) (tool.Answer, error)
		want         string
	}{
		{"granted", "asking", askArgs{Secret: "key"}, yes, "secret s3cr3t-value"},
		{"granted, nobody can be asked", "asking", askArgs{Secret: "key"}, nil, "secret s3cr3t-value"},
		{"another name", "asking", askArgs{Secret: "other"}, yes, "permission_denied: the plugin was not granted a secret other"},
		{"granted to another plugin", "asking2", askArgs{Secret: "key"}, yes, "permission_denied: the plugin was not granted a secret key"},
		{"no ticket", "asking", askArgs{Secret: "key", Ticket: "none"}, yes, "permission_denied: the ticket belongs to no running call"},
		{"a forged ticket", "asking", askArgs{Secret: "key", Ticket: "forged"}, yes, "permission_denied: the ticket belongs to no running call"},
		{"of a call that has ended", "asking", askArgs{Secret: "key", Ticket: "tc_granted"}, yes, "permission_denied: the ticket belongs to no running call"},
		{"a question by a ticket for secrets", "asking", askArgs{}, nil, "unavailable: the user cannot be asked on behalf of this call"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := k.askWith(t, tt.plugin, "tc_"+tt.name, tt.args, tool.Sink{Ask: tt.ask})
			if err != nil || !strings.HasPrefix(got, tt.want) {
				t.Errorf("the plugin heard %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

// TestSecretsOfUsers: a call gets the value that its own user has set.
func TestSecretsOfUsers(t *testing.T) {
	t.Parallel()
	k := keepPlugins(t, Plugin{
		Name: "asking", Path: program(t, "asking"), Confinement: plain, Limits: sandbox.DefaultLimits(),
		Secrets: map[string]string{"key": "of-the-host"}, UserSecrets: []string{"own", "broken"},
	})
	k.opts.UserSecret = func(_ context.Context, user, name string) (string, bool, error) {
		if name == "broken" {
			return "", false, errors.New("cannot be opened: the cause")
		}
		return "of-" + user, user != "eve", nil
	}
	for _, tt := range []struct{ user, name, want string }{
		{"ada", "own", "secret of-ada"},
		{"bob", "own", "secret of-bob"},
		{"bob", "key", "secret of-the-host"},
		{"eve", "own", "unavailable: the user has not set the secret own"},
		{"ada", "broken", "unavailable: the secret broken cannot be read"},
		{"ada", "other", "permission_denied: the plugin was not granted a secret other"},
	} {
		got, err := k.askFor(t, tool.Context{User: tt.user, Session: "s"}, "asking", "tc_"+tt.user+tt.name, askArgs{Secret: tt.name}, tool.Sink{})
		if err != nil || !strings.HasPrefix(got, tt.want) || strings.Contains(got, "the cause") {
			t.Errorf("%s of %s: the plugin heard %q, %v; want %q", tt.name, tt.user, got, err, tt.want)
		}
	}
	if !strings.Contains(k.log.String(), "cannot be opened: the cause") {
		t.Error("the log lacks the cause")
	}
}

// TestHidesInjectedSecrets: the secrets of users are hidden in texts of a plugin that may request them,
// and of one whose proxy injects them, as its server may repeat them.
func TestHidesInjectedSecrets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		plugin Plugin
		want   string
	}{
		{"none", Plugin{}, "the server says of-ada"},
		{"requested", Plugin{UserSecrets: []string{"own"}}, "the server says (hidden)"},
		{"injected", Plugin{Network: &egress.Rules{Inject: []egress.Credential{{Secret: "own", PerUser: true}}}}, "the server says (hidden)"},
		{"of the host", Plugin{Network: &egress.Rules{Inject: []egress.Credential{{Secret: "key"}}}}, "the server says of-ada"},
	} {
		s := &Supervisor{opts: Options{
			Redact: func(text string) string { return text },
			Hide:   func(user, text string) string { return strings.ReplaceAll(text, "of-"+user, "(hidden)") },
		}}
		p := &pool{manager: &manager{s: s, plugin: tt.plugin}, of: owner{user: "ada"}}
		if got := p.redact("the server says of-ada"); got != tt.want {
			t.Errorf("%s: redact() = %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestTicketsOfOthers asks with the ticket of a call that has ended, and with the ticket
// of a running call of another process. The control is the ticket's own call.
func TestTicketsOfOthers(t *testing.T) {
	k := keep(t, "asking", "asking2")
	if got, err := k.askWith(t, "asking", "tc_ended", askArgs{}, tool.Sink{Ask: yes}); err != nil || got != `true {"a":1}` {
		t.Fatalf("control: the plugin heard %q, %v", got, err)
	}
	got, err := k.askWith(t, "asking", "tc_2", askArgs{Ticket: "tc_ended"}, tool.Sink{Ask: yes})
	if err != nil || !strings.HasPrefix(got, "permission_denied: ") {
		t.Errorf("with the ticket of a call that has ended the plugin heard %q, %v", got, err)
	}

	// A call of the other process keeps running while its ticket is used.
	hold := make(chan []byte, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { // ends with ctx
		defer close(ended)
		_, _, _ = k.Run(ctx, "asking2", "", tool.Call{ID: "tc_3", Tool: "ask", Arguments: []byte(`{"Hold":true}`)}, tool.Sink{
			Ask:   yes,
			Chunk: func(c tool.Chunk) { hold <- c.Data },
		})
	}()
	foreign := <-hold
	got, err = k.askWith(t, "asking", "tc_4", askArgs{Raw: foreign}, tool.Sink{Ask: yes})
	if err != nil || !strings.HasPrefix(got, "permission_denied: ") {
		t.Errorf("with the ticket of another process's call the plugin heard %q, %v", got, err)
	}
	if got, err := k.askWith(t, "asking2", "tc_5", askArgs{Raw: foreign}, tool.Sink{}); err != nil || got != `true {"a":1}` {
		t.Errorf("control: the process that has the call heard %q, %v", got, err)
	}
	cancel()
	<-ended
}

// TestOneQuestionAtATime asks twice at once: the second question is refused, and
// the first is answered after that, so that the stream is read on.
func TestOneQuestionAtATime(t *testing.T) {
	k := keep(t, "asking")
	refused := make(chan struct{})
	got, err := k.askWith(t, "asking", "tc_1", askArgs{Twice: true}, tool.Sink{
		Chunk: func(tool.Chunk) { close(refused) },
		Ask: func(ctx context.Context, q tool.Question) (tool.Answer, error) {
			<-refused
			return yes(ctx, q)
		},
	})
	if err != nil || !strings.HasPrefix(got, "conflict: ") || !strings.HasSuffix(got, "\n"+`true {"a":1}`) {
		t.Errorf("the plugin heard %q, %v", got, err)
	}
}

// TestQuestionEndsWithItsCall cancels a call during its question, and kills a process that waits
// for an answer. After that the plugin does not answer the call: a result could arrive before
// the end of the call is noticed.
func TestQuestionEndsWithItsCall(t *testing.T) {
	k := keep(t, "asking")
	for _, tt := range []struct {
		name string
		end  func(cancel func())
	}{
		{"canceled", func(cancel func()) { cancel() }},
		{"crashed", func(func()) { k.live("asking").proc.End("") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var asked atomic.Bool
			over := make(chan error, 1)
			_, _, err := k.Run(ctx, "asking", "", tool.Call{ID: "tc_1", Tool: "ask", Arguments: []byte(`{"Hold":true}`)}, tool.Sink{
				Ask: func(asking context.Context, _ tool.Question) (tool.Answer, error) {
					asked.Store(true)
					tt.end(cancel)
					<-asking.Done()
					over <- asking.Err()
					return tool.Answer{}, asking.Err()
				},
			})
			if err == nil {
				t.Error("Run() = nil, want an error")
			}
			if !asked.Load() {
				t.Fatalf("the user was not asked: %v", err)
			}
			if got := <-over; got == nil {
				t.Error("the question did not end")
			}
			k.forgive("asking")
		})
	}
}

// TestDeafPlugin has a plugin ask and never read: its channel ends, and so does
// the process.
func TestDeafPlugin(t *testing.T) {
	t.Parallel()
	k := keep(t, "deaf")
	if err := k.Restart(t.Context(), "deaf"); err != nil {
		t.Fatal(err)
	}
	if live := k.live("deaf"); live != nil {
		<-live.ended
	}
	const unread = "did not read the answers to its requests"
	if s := k.state(t, "deaf"); s.LastCrash == nil || s.LastCrash.Cause != unread {
		t.Errorf("the last crash is %s, want that it %s", fmt.Sprint(s.LastCrash), unread)
	}
}
