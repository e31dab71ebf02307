package bench

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const (
	// nodePeers is where `make peers` installs the programs that the web plugin is compared
	// with.
	nodePeers = "../internal/tools/mcp"
	// webPages are the pages that both convert.
	webPages = "../plugins/web/internal/page/testdata/golden"
)

// conversion is a program that converts pages again and again.
type conversion struct {
	command []string
	cpu     []time.Duration // for a megabyte
	rate    []time.Duration // the same, of wall-clock time
	bytes   int
}

func (c *conversion) round(b *testing.B) {
	b.Helper()
	cmd := exec.Command(c.command[0], c.command[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%v: %v", cmd.Args, err)
	}
	var said struct {
		CPU   float64 `json:"cpu_us"`
		Took  float64 `json:"took_us"`
		Bytes int     `json:"bytes"`
		Text  int     `json:"text"`
	}
	if err := json.Unmarshal(out, &said); err != nil || said.Text == 0 {
		b.Fatalf("%v: %s, %v", cmd.Args, out, err)
	}
	megabytes := float64(said.Bytes) / 1e6
	c.cpu = append(c.cpu, time.Duration(said.CPU*1e3/megabytes))
	c.rate = append(c.rate, time.Duration(said.Took*1e3/megabytes))
	c.bytes = said.Bytes
}

// BenchmarkArticle converts the articles of twenty pages to markdown: with the code of the web
// plugin, and with jsdom, Readability and turndown on node.
func BenchmarkArticle(b *testing.B) {
	if _, err := os.Stat(filepath.Join(nodePeers, "node_modules", "jsdom")); err != nil {
		b.Fatalf("jsdom is not installed: %v; make peers does it", err)
	}
	ours := &conversion{command: []string{filepath.Join(bin, "article"), webPages, "4"}}
	theirs := &conversion{command: []string{
		filepath.Join(nodePeers, "node_modules", ".bin", "node"), "testdata/article.cjs", nodePeers, webPages, "4",
	}}
	for b.Loop() {
		ours.round(b)
		theirs.round(b)
	}
	if ours.bytes != theirs.bytes {
		b.Errorf("they converted %d and %d bytes", ours.bytes, theirs.bytes)
	}
	report(b, "cpu", "cpu-µs/MB", [2]string{"web", "node"}, median(ours.cpu), median(theirs.cpu))
	b.ReportMetric(1/median(ours.rate).Seconds(), "web-MB/s")
	b.ReportMetric(1/median(theirs.rate).Seconds(), "node-MB/s")
}
