package policy

import (
	"fmt"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/command"
)

// BenchmarkCommands judges the commands of the cases by 200 entries of commands.allow, in which
// matching entries come last: once including the parsing, and once without it.
func BenchmarkCommands(b *testing.B) {
	table, lists := readShellCases(b)
	for i := len(lists.Allow); i < 200; i++ {
		lists.Allow = append([]CommandRule{{Words: []string{fmt.Sprintf("program%d", i), "build", "*"}}}, lists.Allow...)
	}
	opts := command.Options{Workspace: table.Policy.Workspace, Assign: lists.Assign, WriteRedirects: lists.WriteRedirects}
	read := func() []*command.Line {
		lines := make([]*command.Line, 0, len(table.Cases))
		for _, tt := range table.Cases {
			lines = append(lines, command.Parse(tt.Command, opts))
		}
		return lines
	}
	lines := read()
	run := func(name string, get func() []*command.Line) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for _, line := range get() {
					lists.judge(Command{Line: line}, Level{})
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(lines)), "ns/line")
		})
	}
	run("judge", func() []*command.Line { return lines })
	run("read and judge", read)
}
