package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxNotices bounds the notices that wait while a person decides about a call. Further ones are
// counted.
const maxNotices = 20

// maxReason bounds why a call was denied, in characters.
const maxReason = 200

// feed follows the events of a host that concern an approver.
type feed struct {
	news chan struct{} // holds one: something has happened since it was last emptied

	mu      sync.Mutex // guards the fields below
	notices []string
	dropped int
	err     error // why the stream has ended
}

// follow reads events until ctx or the stream ends. The first news says that it has begun.
func (f *feed) follow(ctx context.Context, c *client.Client, command func(string) string) {
	begun := false
	for e, err := range c.Events(ctx, "", event.KindToolApproval, event.KindToolResult, event.KindPluginState, event.KindCallsStopped, event.KindDefinitions, event.KindBrokenClaim) {
		notice := ""
		switch e.Kind {
		case "": // a sign of life
			if begun && err == nil {
				continue
			}
		case event.KindToolResult:
			if notice = denial(e.Data, command); notice == "" {
				continue
			}
		case event.KindPluginState:
			if notice = breakage(ctx, c, e.Data); notice == "" {
				continue
			}
		case event.KindCallsStopped:
			notice = stopOrResume(e.Data)
		case event.KindDefinitions:
			if notice = toAccept(e.Data, command); notice == "" {
				continue
			}
		case event.KindBrokenClaim:
			notice = brokenClaim(e.Data, command)
		case event.KindToolApproval, event.KindAgentState, event.KindToolProgress, event.KindToolCall,
			event.KindFileChanged, event.KindCatalogChanged, event.KindConnection, event.KindGap:
		}
		begun = true
		f.add(notice, endOfStream(err))
	}
	f.add("", client.ErrEnded)
}

// add adds a notice and the error that ended the stream, if there are any.
func (f *feed) add(notice string, err error) {
	f.mu.Lock()
	switch {
	case notice == "":
	case len(f.notices) < maxNotices:
		f.notices = append(f.notices, notice)
	default:
		f.dropped++
	}
	if f.err == nil {
		f.err = err
	}
	f.mu.Unlock()
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// look reports whether there are news since it was last called. After the end of the stream, it
// returns the reason.
func (f *feed) look() (news bool, err error) {
	select {
	case <-f.news:
		news = true
	default:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return news, f.err
}

// takeNotices returns the notices since the last call.
func (f *feed) takeNotices() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	notices := f.notices
	if f.dropped > 0 {
		notices = append(notices, fmt.Sprintf("%d more notices are not shown", f.dropped))
	}
	f.notices, f.dropped = nil, 0
	return notices
}

// maxOwner bounds the shown names of a user and a session, in characters.
const maxOwner = 40

// toAccept says that definitions of a plugin wait to be accepted, or returns "".
func toAccept(data json.RawMessage, command func(string) string) string {
	var d event.Definitions
	if json.Unmarshal(data, &d) != nil || d.Pending == 0 || d.By != "" {
		return ""
	}
	return httpapi.PendingText(line(d.Plugin), d.Pending) + ": " + command("plugins diff "+shellQuoted(d.Plugin))
}

// denial describes a call that the policy, the host or the tool denied, or returns "".
func denial(data json.RawMessage, command func(string) string) string {
	var result event.ToolResult
	if json.Unmarshal(data, &result) != nil || result.Error == nil || !strings.EqualFold(result.Error.Code, string(tool.PermissionDenied)) {
		return ""
	}
	return fmt.Sprintf("denied: %s: %s; %s", result.Tool, head(line(result.Error.Message), maxReason), command("journal query --call "+result.ID))
}

// brokenClaim describes a tool that claims to be read_only and may have tried to change something.
func brokenClaim(data json.RawMessage, command func(string) string) string {
	var broken event.BrokenClaim
	if json.Unmarshal(data, &broken) != nil {
		return ""
	}
	return fmt.Sprintf("tool %s claims to be read_only and may have tried to change something (%s); %s",
		line(broken.Tool), line(broken.Sign), command("journal query --call "+broken.ID))
}

// breakage describes a plugin, or the process of one user, that has crashed or cannot be started, or
// returns "".
func breakage(ctx context.Context, c *client.Client, data json.RawMessage) string {
	var change event.PluginState
	if json.Unmarshal(data, &change) != nil || change.Phase != supervisor.Backoff.String() && change.Phase != supervisor.Broken.String() {
		return ""
	}
	whose := ownerText(change.User, change.Session)
	if p, err := c.Plugin(ctx, change.Name); err == nil {
		if why := problemLine(stateOf(p.State, change.User, change.Session, change.Reader)); why != "" {
			return "plugin " + whose + strings.TrimPrefix(why, "plugin ")
		}
	}
	return "plugin " + whose + change.Name + " does not run: " + change.Phase
}

// stateOf returns the state of a plugin with the last crash of the processes of one user or session;
// the user "" means those of everybody.
func stateOf(s supervisor.State, user, session string, reader bool) supervisor.State {
	for _, i := range s.Instances {
		if i.User == user && i.Session == session && i.Reader == reader {
			s.Phase, s.LastCrash, s.Refused = i.Phase, i.LastCrash, i.Refused
		}
	}
	return s
}

// ownerText names the owner of a process before the name of its plugin; "" if it is everybody's.
func ownerText(user, session string) string {
	switch {
	case user == "" && session == "":
		return ""
	case session == "":
		return "of " + head(line(user), maxOwner) + ": "
	}
	return "of " + head(line(user), maxOwner) + " in session " + head(line(session), maxOwner) + ": "
}

// stopOrResume describes calls that an admin has stopped or resumed.
func stopOrResume(data json.RawMessage) string {
	var change event.CallsStopped
	if json.Unmarshal(data, &change) != nil {
		return ""
	}
	notice := fmt.Sprintf("%s %s, by %s", change.State, change.Calls, change.By)
	if change.Reason != "" && change.State == event.Stopped {
		notice += ": " + change.Reason
	}
	return notice
}
