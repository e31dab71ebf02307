//go:build !linux

package supervisor

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
)

// attempt is a tool on Linux only.
func (p *testPlugin) attempt(r *toolpluginv1.CallRequest, _ callStream) error {
	return status.Errorf(codes.InvalidArgument, "no tool %q", r.GetTool())
}
