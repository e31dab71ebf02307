package mcpserver

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
)

// follow publishes the catalog after each change, from the first request on until stop. stop may
// be called more than once.
func (s *Server) follow() (stop func()) {
	changes, unsubscribe := s.opts.Catalog.Changed()
	ended := make(chan struct{})
	var following sync.WaitGroup
	following.Go(func() { // ends with stop, which waits for it
		for {
			select {
			case <-ended:
				return
			case <-changes:
				if s.asked.Load() {
					s.publish()
				}
			}
		}
	})
	return sync.OnceFunc(func() {
		unsubscribe()
		close(ended)
		following.Wait()
	})
}

// publishFirst publishes the catalog before the first request is handled. A host that no MCP client
// connects to does without.
func (s *Server) publishFirst(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		s.first.Do(func() {
			s.asked.Store(true)
			s.publish()
		})
		return next(ctx, method, req)
	}
}

// Relist tells clients to list the tools again, because their lists may now leave out others.
func (s *Server) Relist() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.published {
		s.sdk.AddTool(describe(e), s.call) // the SDK tells of it
		return
	}
}

// publish makes the SDK list the catalog's current tools. Entries are immutable, so an
// unchanged pointer needs no work. The SDK combines changes within a few milliseconds into one
// notification.
func (s *Server) publish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := map[string]*catalog.Entry{}
	for _, e := range s.opts.Catalog.Entries() {
		now[e.Spec.Name] = e
		if s.published[e.Spec.Name] != e {
			s.sdk.AddTool(describe(e), s.call)
		}
	}
	for name := range s.published {
		if now[name] == nil {
			s.sdk.RemoveTools(name)
		}
	}
	s.published = now
}

// afterInitialize suppresses list changes for a client that has not initialized yet and so
// cannot have read the list. The SDK would send them.
func afterInitialize(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		session, ok := req.GetSession().(*mcp.ServerSession)
		if ok && method == "notifications/tools/list_changed" && session.InitializeParams() == nil {
			return nil, nil
		}
		return next(ctx, method, req)
	}
}

// listed returns which tools a caller gets in a list: those that it may use and the host's own.
// If these are more than the client's bound, only core tools are listed, and find_tool and
// call_tool stand for the others.
func (s *Server) listed(caller auth.Caller, client Client) func(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, core := make(map[string]bool), make(map[string]bool)
	for name, e := range s.published {
		if e.Searches() {
			core[name] = true
		} else if e.OfHost() || caller.MayUse(name) {
			all[name] = true
			core[name] = e.Spec.Core
		}
	}
	if client.SearchAbove > 0 && len(all) > client.SearchAbove {
		return func(name string) bool { return core[name] }
	}
	return func(name string) bool { return all[name] }
}

func (s *Server) lists(e *catalog.Entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.published[e.Spec.Name] == e
}

// listFor limits a list of tools to those that [Server.listed] selects. It leaves out output schemas for
// clients that do not receive structured results.
func (s *Server) listFor(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		list, ok := result.(*mcp.ListToolsResult)
		if err != nil || !ok {
			return result, err
		}
		caller, err := s.callerOf(req)
		if err != nil {
			return nil, err
		}
		client := s.client(req, caller)
		listed := s.listed(caller, client)
		list.Tools = slices.DeleteFunc(list.Tools, func(t *mcp.Tool) bool { return !listed(t.Name) })
		if client.Structured {
			return list, nil
		}
		for i, t := range list.Tools {
			if t.OutputSchema == nil {
				continue
			}
			plain := *t // the SDK shares its own
			plain.OutputSchema = nil
			list.Tools[i] = &plain
		}
		return list, nil
	}
}

// title returns a tool's name for people.
func title(e *catalog.Entry) string {
	if e.Spec.Title != e.Spec.Name {
		return e.Spec.Title
	}
	words := strings.ReplaceAll(e.Spec.Name, "_", " ")
	return strings.ToUpper(words[:1]) + words[1:]
}

// describe returns a tool as clients see it.
func describe(e *catalog.Entry) *mcp.Tool {
	destructive := e.Destructive()
	t := &mcp.Tool{
		Name:        e.Spec.Name,
		Title:       title(e),
		Description: e.Spec.Description,
		InputSchema: e.Schema.Listed(),
		// Clients use these to decide what to ask a person, so all are always set.
		Annotations: &mcp.ToolAnnotations{
			ReadOnlyHint:    e.ReadOnly(),
			DestructiveHint: &destructive,
			IdempotentHint:  e.Idempotent(),
			OpenWorldHint:   &e.Spec.OpenWorld,
		},
	}
	// Claude Code shows this many characters of a result and saves longer ones to a file.
	t.Meta = mcp.Meta{"anthropic/maxResultSizeChars": int(MaxOutput)}
	// Claude Code loads other tools only when the model searches for them.
	if e.Spec.Core {
		t.Meta["anthropic/alwaysLoad"] = true
	}
	if e.Spec.SearchHint != "" {
		t.Meta["anthropic/searchHint"] = e.Spec.SearchHint
	}
	if schema := e.Output.Public(); schema != nil {
		t.OutputSchema = schema
	}
	return t
}

// promisesStructured reports whether a tool is listed with an output schema.
func (s *Server) promisesStructured(name string) bool {
	entry, err := s.opts.Catalog.Lookup(name)
	return err == nil && entry.Output.Public() != nil
}

// maxAwait bounds the wait for the tools of starting plugins. Clients give up after about a
// minute.
const maxAwait = 15 * time.Second

// awaitTools delays a request whose answer depends on tools that are not known yet.
func (s *Server) awaitTools(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch params := req.GetParams().(type) {
		case *mcp.ListToolsParams:
			s.awaitReady(ctx)
			s.publish()
		case *mcp.CallToolParamsRaw:
			if params == nil {
				break
			}
			called := s.opts.Pipeline.Unwrap(pipeline.Request{Tool: params.Name, Arguments: params.Arguments})
			if _, err := s.opts.Catalog.Lookup(called.Tool); err != nil {
				s.awaitReady(ctx)
			}
		}
		return next(ctx, method, req)
	}
}

func (s *Server) awaitReady(ctx context.Context) {
	if s.opts.Ready == nil {
		return
	}
	timer := time.NewTimer(maxAwait)
	defer timer.Stop()
	select {
	case <-s.opts.Ready:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// resolveName resolves aliases, which the SDK does not know, and answers a call of an unknown
// tool with the nearest names.
func (s *Server) resolveName(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		params, ok := req.GetParams().(*mcp.CallToolParamsRaw)
		if !ok || params == nil {
			return next(ctx, method, req)
		}
		caller, wrong := s.callerOf(req)
		if wrong != nil {
			return nil, wrong
		}
		entry, err := s.opts.Catalog.LookupFor(params.Name, caller.MayUse)
		if err != nil {
			message := err.Message
			if err.Hint != "" {
				message += "; " + err.Hint
			}
			// "Protocol Errors: ... Unknown tools" (MCP, server/tools, "Error Handling")
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
		}
		if !s.lists(entry) {
			s.publish() // the call has arrived before the change was published
		}
		params.Name = entry.Spec.Name
		return next(ctx, method, req)
	}
}
