package client_test

import (
	"testing"

	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
)

// One read_only call from client to client, with all but the plugin's process.
func BenchmarkCall(b *testing.B) {
	h := httpapitest.Start(b, httpapitest.Options{})
	for name, opts := range map[string]client.Options{
		"control": {StateDir: h.StateDir},
		"network": {URL: h.URL, Token: h.Agent},
	} {
		b.Run(name, func(b *testing.B) {
			c, err := client.New(opts)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			b.ReportAllocs()
			for b.Loop() {
				if got, err := c.Call(b.Context(), client.Call{Tool: "look"}); err != nil || got.Status != client.Success {
					b.Fatal(got, err)
				}
			}
		})
	}
}
