package daemon

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// watched is a catalog and the notices about its changes.
type watched struct {
	*offers

	catalog *catalog.Catalog
	log     bytes.Buffer
	close   func()
}

// openOffers opens what earlier hosts have seen, over a state directory.
func openOffers(t *testing.T, dir string) *watched {
	t.Helper()
	w := new(watched)
	db, err := store.Open(t.Context(), store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	records, err := journal.Open(t.Context(), journal.Options{Store: db, KeyPath: filepath.Join(dir, "journal.key")})
	if err != nil {
		t.Fatal(err)
	}
	w.close = func() {
		if err := records.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	if w.offers, err = readOffers(t.Context(), db, records, hclog.New(&hclog.LoggerOptions{Output: &w.log, DisableTime: true})); err != nil {
		t.Fatal(err)
	}
	plugins := []catalog.Plugin{
		{Name: "a", Ceiling: tool.Privileged, TrustClaims: true},
		{Name: "b", Ceiling: tool.Privileged, TrustClaims: true, Tools: []catalog.ToolOptions{{Name: "off", Disabled: true}}},
	}
	w.reserve(plugins)
	if w.catalog, err = catalog.New(catalog.Options{Plugins: plugins}); err != nil {
		t.Fatal(err)
	}
	return w
}

// publish publishes tools, and returns the resulting log.
func (w *watched) publish(t *testing.T, plugin, digest string, specs ...tool.Spec) []string {
	t.Helper()
	if err := w.catalog.Publish(plugin, digest, specs); err != nil {
		t.Fatal(err)
	}
	w.look(t.Context(), w.catalog)
	said := slices.Collect(strings.Lines(w.log.String()))
	w.log.Reset()
	w.look(t.Context(), w.catalog)
	if w.log.Len() > 0 {
		t.Errorf("a second look tells %s", w.log.String())
	}
	return said
}

func offered(name string, tier tool.Tier, description string) tool.Spec {
	return tool.Spec{Name: name, Tier: tier, Description: description, InputSchema: json.RawMessage(`{"type":"object"}`)}
}

// TestChangesAreTold publishes tools before and after a restart, and reads the log, the
// journal and the list.
func TestChangesAreTold(t *testing.T) {
	dir := t.TempDir()
	w := openOffers(t, dir)
	read, write := offered("read", tool.ReadOnly, "Reads."), offered("write", tool.SideEffecting, "Writes.")
	if said := w.publish(t, "a", "1", read, write); len(said) > 0 || len(w.changes()) > 0 {
		t.Errorf("a plugin that is new is told: %v, %v", said, w.changes())
	}
	want := []string{
		"[WARN]  a tool is refused: plugin=b tool=read reason=\"plugin \\\"a\\\", which is first in the configuration, has a tool of this name\"\n",
	}
	if diff := cmp.Diff(want, w.publish(t, "b", "1", read, offered("off", tool.ReadOnly, "Is off."))); diff != "" {
		t.Errorf("refusals in the log (-want +got):\n%s", diff)
	}
	w.close()

	w = openOffers(t, dir)
	want = []string{
		"[WARN]  a tool is refused: plugin=b tool=read reason=\"plugin \\\"a\\\", which is first in the configuration, had a tool of this name when it last ran\"\n",
	}
	if diff := cmp.Diff(want, w.publish(t, "b", "1", read, offered("off", tool.ReadOnly, "Is off."))); diff != "" {
		t.Errorf("refusals in the log before the first plugin runs (-want +got):\n%s", diff)
	}
	changes := []string{
		"the program of the plugin has changed", "tool read: tier read_only -> privileged", "tool send: new", "tool write: description changed",
	}
	said := strings.Join(w.publish(t, "a", "2", offered("read", tool.Privileged, "Reads."), offered("send", tool.ReadOnly, "Sends."),
		offered("write", tool.SideEffecting, "Writes, and more.")), "")
	for _, change := range changes {
		if n := strings.Count(said, `a plugin has changed: plugin=a change="`+change+`"`); n != 1 {
			t.Errorf("the log tells %q %d times, want once:\n%s", change, n, said)
		}
	}
	w.close()

	w = openOffers(t, dir)
	defer w.close()
	got := w.changes()["a"]
	if diff := cmp.Diff(changes, got.Changes); diff != "" || got.Since.IsZero() || len(w.changes()) != 1 {
		t.Errorf("after a restart the changes are %+v (-want +got):\n%s", w.changes(), diff)
	}
	rows, err := w.journal.Query(t.Context(), journal.Query{Plugin: "a", OldestFirst: true})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, r := range rows {
		if r.Kind != journal.Change || r.Digest != "2" || r.Call != "" {
			t.Errorf("the row is %+v", r)
		}
		told = append(told, r.Notice)
	}
	if diff := cmp.Diff(changes, told); diff != "" {
		t.Errorf("the journal (-want +got):\n%s", diff)
	}
	if report, err := w.journal.Verify(t.Context()); err != nil || len(report.Problems) > 0 {
		t.Errorf("Verify = %+v, %v", report, err)
	}
}
