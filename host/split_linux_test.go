package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/state/journal"
)

// believing has plugins whose claims are believed as far as the arguments say: a line of the
// blocks of both.
func believing(line string) string {
	return listening + `
plugin "probe" {
  tier = "side_effecting"
  ` + line + `
}
plugin "fs" {
  tier = "side_effecting"
  ` + line + `
}
`
}

// splitHost is a host and the file that the plugin probe changes.
type splitHost struct {
	*host

	count string
}

func serveSplit(t *testing.T, line string) splitHost {
	t.Helper()
	h := serve(t, writeConfig(t, believing(line)))
	return splitHost{h, filepath.Join(h.dir, "ws", "count")}
}

// makes makes a call that does not wait for a person.
func (h splitHost) makes(t *testing.T, tool string, arguments map[string]any) client.Outcome {
	t.Helper()
	status, text, err := h.send("POST", "/v1/calls", h.token, asJSON(map[string]any{"tool": tool, "arguments": arguments}), "Prefer", "approval-wait=0")
	return outcomeOf(t, status, text, err)
}

// changed reports whether the plugin has changed the file.
func (h splitHost) changed() bool {
	_, err := os.Stat(h.count)
	return err == nil
}

// TestSplitTiers: with split_tiers, the reading tools of a plugin that is not trusted run unasked, and
// one that claims to read and writes changes nothing and is told of. The controls are the same calls
// without split_tiers: unless the plugin is trusted each is asked about, and if it is, the lie works.
func TestSplitTiers(t *testing.T) {
	t.Parallel()
	lie := map[string]any{"note": "lie", "approved": true} // for which the tool claims to be read_only
	read := map[string]any{"path": "hello.txt"}

	t.Run("control: not trusted", func(t *testing.T) {
		t.Parallel()
		h := serveSplit(t, "")
		for tool, arguments := range map[string]map[string]any{"probe_process": nil, "read_file": read, "probe_gullible": lie} {
			if o := h.makes(t, tool, arguments); o.ApprovalID == "" {
				t.Errorf("%s = %s, want that it waits for a person", tool, asJSON(o))
			}
		}
	})
	t.Run("control: trusted", func(t *testing.T) {
		t.Parallel()
		h := serveSplit(t, `claims = "trust"`)
		if o := h.makes(t, "probe_gullible", lie); o.Error != nil || !h.changed() {
			t.Errorf("a lie = %s, want that it works", asJSON(o))
		}
	})
	t.Run("split", func(t *testing.T) {
		t.Parallel()
		h := serveSplit(t, "split_tiers = true")
		for tool, arguments := range map[string]map[string]any{"probe_process": nil, "read_file": read} {
			if o := h.makes(t, tool, arguments); o.Status != client.Success || o.Result == nil {
				t.Errorf("%s = %s, want that it runs unasked", tool, asJSON(o))
			}
		}
		if o := h.makes(t, "probe_count", map[string]any{"note": "truth"}); o.ApprovalID == "" {
			t.Errorf("a change = %s, want that it waits for a person", asJSON(o))
		}
		o := h.makes(t, "probe_gullible", lie)
		if o.Error == nil || !strings.Contains(o.Error.Hint, "probe_gullible claims to be read_only") || h.changed() {
			t.Errorf("a lie = %s, want that it fails and says why", asJSON(o))
		}
		var rows []journal.Record
		eventually(t, "the call is in the journal", func() bool {
			rows = h.journal(t, "--call", o.ToolCallID)
			return len(rows) > 0
		})
		if rows[0].BrokenClaim != "read-only file system" {
			t.Errorf("the journal has %+v", rows[0])
		}
		if text := h.ok(t, "journal", "query", "--call", o.ToolCallID); !strings.Contains(text, ", broken claim") {
			t.Errorf("the journal is %s", text)
		}
		text := h.ok(t, "plugins", "inspect", "probe")
		for _, want := range []string{"Split tiers:  read_only calls", "Reader:       ", "(reader)", "probe: tool probe_gullible claims to be read_only and may have tried to change something 1 times"} {
			if !strings.Contains(text, want) {
				t.Errorf("plugins inspect prints no %q:\n%s", want, text)
			}
		}
		if text := h.ok(t, "plugins", "list"); !strings.Contains(text, "probe   ready  ") || !strings.Contains(text, "(reader)") {
			t.Errorf("plugins list prints\n%s", text)
		}
		if text := h.ok(t, "doctor"); !strings.Contains(text, "reader, for read_only calls: ") {
			t.Errorf("doctor prints\n%s", text)
		}
	})
	t.Run("split and accepted", func(t *testing.T) {
		t.Parallel()
		h := serveSplit(t, "split_tiers = true")
		h.ok(t, "plugins", "accept", "probe", "--yes")
		if o := h.makes(t, "probe_gullible", lie); o.Error == nil || h.changed() {
			t.Errorf("a lie = %s, want that it fails", asJSON(o))
		}
		if o := h.makes(t, "probe_gullible", lie); o.Error == nil || !strings.Contains(o.Error.Message, "an administrator has not accepted it") {
			t.Errorf("the next call = %s, want that the tool is no longer accepted", asJSON(o))
		}
		if o := h.makes(t, "probe_process", nil); o.Status != client.Success {
			t.Errorf("another tool = %s, want that it stays accepted", asJSON(o))
		}
		if text := h.ok(t, "journal", "query"); !strings.Contains(text, "no longer accepts the tool probe_gullible") {
			t.Errorf("the journal is %s", text)
		}
		h.ok(t, "plugins", "accept", "probe", "--yes")
		if o := h.makes(t, "probe_gullible", map[string]any{"note": "truth"}); strings.Contains(asJSON(o), "not offered") {
			t.Errorf("after it was accepted again = %s", asJSON(o))
		}
	})
}

// TestSplitTiersOfAnOrdinaryUser runs TestSplitTiers with hosts of an ordinary user.
func TestSplitTiersOfAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // this is an ordinary user
	}
	asOrdinaryUser(t, "^TestSplitTiers$", "TestSplitTiers/split")
}
