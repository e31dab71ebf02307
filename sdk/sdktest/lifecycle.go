package sdktest

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/toolhost/toolhost/sdk/tool"
)

// checkHealth checks the health service, with which a host finds out whether a silent
// plugin is alive.
func (c *checker) checkHealth(ctx context.Context) {
	if c.plugin.process == nil {
		return // go-plugin serves it only in a process
	}
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	response, err := grpc_health_v1.NewHealthClient(c.plugin.conn).
		Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: plugin.GRPCServiceName})
	switch {
	case status.Code(err) == codes.Unimplemented:
		c.report("health", "", "it does not serve grpc.health.v1.Health")
	case err != nil:
		c.report("health", "", "for the service %q it answers %v, expected SERVING", plugin.GRPCServiceName, err)
	case response.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING:
		c.report("health", "", "for the service %q it answers %v, expected SERVING", plugin.GRPCServiceName, response.GetStatus())
	}
}

// checkSessions ends a session that the plugin does not know.
func (c *checker) checkSessions(ctx context.Context) {
	if !slices.Contains(c.plugin.describe.GetCapabilities(), "end_session") {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	if err := c.plugin.EndSession(ctx, "no such session"); err != nil {
		c.report("session", "", "the end of an unknown session is an error: %v", err)
	}
}

// drains reports whether all calls end, if the plugin can drain.
func (c *checker) drains(ctx context.Context) bool {
	if !slices.Contains(c.plugin.describe.GetCapabilities(), "drain") {
		return true
	}
	ctx, cancel := within(ctx, c.patience)
	defer cancel()
	err := c.plugin.Drain(ctx)
	return err == nil || ctx.Err() == nil
}

// checkDrain checks that a drained plugin refuses calls.
func (c *checker) checkDrain(ctx context.Context) {
	if len(c.tools) == 0 || !slices.Contains(c.plugin.describe.GetCapabilities(), "drain") {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	if err := c.plugin.Drain(ctx); err != nil {
		c.report("drain", "", "with no call running: %v", err)
		return
	}
	t := c.tools[0]
	delete(c.hopeless, t.Name) // the call must not begin
	result := c.call(ctx, "drain", Call{Tool: t.Name, Args: json.RawMessage(`{"no_such_argument":true}`)}, c.patience)
	if result != nil && result.GetError().GetCode() != string(tool.Unavailable) {
		c.report("drain", t.Name, "a call after Drain ends with code %q, want %q", result.GetError().GetCode(), tool.Unavailable)
	}
}

// checkShutdown checks that the process ends on the host's request.
func (c *checker) checkShutdown(ctx context.Context) {
	if c.plugin.process == nil {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	const method = "/plugin.GRPCController/Shutdown"
	// The process may end before it has answered.
	if err := c.plugin.conn.Invoke(bounded, method, &emptypb.Empty{}, &emptypb.Empty{}); status.Code(err) == codes.Unimplemented {
		c.report("shutdown", "", "it does not serve plugin.GRPCController/Shutdown, so that a host must kill it")
		return
	}
	if !c.ends(ctx) {
		c.report("shutdown", "", "the process still runs %v after plugin.GRPCController/Shutdown; a host would kill it", c.patience)
	}
}

// checkExit checks that the process ends with its host.
func (c *checker) checkExit(ctx context.Context) {
	if c.plugin.process == nil {
		return
	}
	c.plugin.process.hangUp()
	if !c.ends(ctx) {
		c.report("exit", "", "the process still runs %v after its standard input was closed; it would outlive a host that was killed", c.patience)
	}
}

// ends reports whether the process ends in time by itself, and kills it if it
// does not.
func (c *checker) ends(ctx context.Context) bool {
	run := c.plugin.process
	timer := time.NewTimer(c.patience)
	defer timer.Stop()
	select {
	case <-run.ended:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	run.kill()
	return ctx.Err() != nil // the suite has ended
}
