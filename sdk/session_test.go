package sdk_test

import (
	"slices"
	"testing"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
)

func TestOnSessionEnd(t *testing.T) {
	p := sdk.New("listens", "1.0.0")
	with[struct{}](spec("x"))(p)
	var heard []string
	p.OnSessionEnd(func(session string) { heard = append(heard, "first "+session) })
	p.OnSessionEnd(func(string) { panic("on purpose") })
	p.OnSessionEnd(func(session string) { heard = append(heard, "last "+session) })
	running := sdktest.Start(t, p, sdktest.Options{})
	for _, session := range []string{"a", "b"} {
		if err := running.EndSession(t.Context(), session); err != nil {
			t.Fatal(err)
		}
	}
	running.Close()
	if want := []string{"first a", "last a", "first b", "last b"}; !slices.Equal(heard, want) {
		t.Errorf("the plugin has heard %q, want %q", heard, want)
	}
}

// A plugin without a function for it is not told.
func TestNoOnSessionEnd(t *testing.T) {
	p := sdk.New("deaf", "1.0.0")
	with[struct{}](spec("x"))(p)
	if err := sdktest.Start(t, p, sdktest.Options{}).EndSession(t.Context(), "a"); err == nil {
		t.Error("a plugin without the capability is told of the end of a session")
	}
}
