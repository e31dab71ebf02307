package supervisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

func Example() {
	launcher, err := sandbox.NewLauncher()
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		return
	}
	defer launcher.Close()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		return
	}
	defer os.RemoveAll(dir)
	program, err := programs.copyTo(filepath.Join(dir, "calm"))
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		return
	}

	s, err := New(Options{
		Plugins:  []Plugin{{Name: "calm", Path: program, Limits: sandbox.DefaultLimits()}},
		Launcher: launcher,
		StateDir: filepath.Join(dir, "state"),
		RunDir:   filepath.Join("/tmp", filepath.Base(dir)),
	})
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		return
	}
	defer s.Close()

	result, _, err := s.Run(context.Background(), "calm", "", tool.Call{ID: "tc_1", Tool: "echo", Arguments: []byte(`{"text":"hi"}`)}, tool.Sink{})
	fmt.Fprintln(os.Stdout, result.Text(), err)
	_, _, err = s.Run(context.Background(), "calm", "", tool.Call{ID: "tc_2", Tool: "exit", Arguments: []byte(`{}`)}, tool.Sink{})
	fmt.Fprintln(os.Stdout, err)

	// A reload: changed plugins start while the old ones run, and then replace them.
	change, err := s.Prepare(context.Background(), []Plugin{{Name: "calm", Path: program, Limits: sandbox.DefaultLimits(), Eager: true}})
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		return
	}
	change.Commit()
	preview, err := s.Preview(context.Background(), "calm", "", tool.Call{ID: "tc_3", Tool: "echo", Arguments: []byte(`{}`)})
	fmt.Fprintln(os.Stdout, preview.Summary, err)
	// Output:
	// {"text":"hi"} <nil>
	// plugin_crashed: the plugin "calm" exited with code 5
	// would do it <nil>
}
