package config

import (
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
)

// maxMaxCrashes bounds the crashes that the supervisor remembers of one plugin.
const maxMaxCrashes = 1000

// restart reads the restart block of a plugin.
func (d *decoder) restart(blocks []restartBlock) (r supervisor.Restart) {
	for _, block := range blocks {
		const expected = "a number of crashes from 1 to 1000"
		if n, ok := d.count(block.MaxCrashes, 1, expected); ok && n > maxMaxCrashes {
			d.mistake(block.MaxCrashes.Expr.Range(), "Out of range", "Expected %s for max_crashes.", expected)
		} else if ok {
			r.MaxCrashes = int(n)
		}
		for _, setting := range []struct {
			attr *hcl.Attribute
			into *time.Duration
		}{{block.Within, &r.Within}, {block.Pause, &r.Pause}, {block.MaxPause, &r.MaxPause}} {
			if t, ok := d.durationWithin(setting.attr, time.Second, day, `a duration from "1s" to "24h"`); ok {
				*setting.into = t
			}
		}
	}
	return r
}
