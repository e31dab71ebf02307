package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/soak"
)

// attack is one thing that a hostile program tries.
type attack struct {
	// name is its row in SECURITY.md.
	name string
	// stage prepares one attempt. It is called again for each attempt.
	stage func(s *scene) attempt
	// root and user are the levels that stop the attack, by their first letters: for a host that
	// runs as root, and for one that does not. An empty user means the same as root.
	root, user string
	// by is what stops the attack at every level, including Off: then the control runs without a
	// launcher, or as its attempt says. Otherwise the test determines the layers that stop it.
	by string
	// rootOnly says why no control can succeed for an ordinary user.
	rootOnly string
}

const (
	all     = "bis"
	nowhere = "-"
)

// attempt is an attack that is about to be made.
type attempt struct {
	// program is which hostile program to run, with its arguments.
	program []string
	// profile changes the program's profile, also for the control.
	profile func(p *Profile)
	// control changes the profile of the control alone.
	control func(p *Profile)
	// impossible means that the control is another program because this machine lets no one do
	// this. What stops the attack cannot be measured here. Elsewhere it is the filter of system
	// calls.
	impossible bool
	// bare runs the program without a launcher and returns its output.
	bare func(t *testing.T, program []string) string
	// launch starts the program in another way and returns its output.
	launch func(t *testing.T, p Profile, drop []Layer) string
	// during is called while the program runs, before its input is closed.
	during func(t *testing.T, p *Process)
	// happened reports whether the attack took effect, judging by the program's output or by
	// visible traces. nil: the program printed "done".
	happened func(t *testing.T, out string) bool
}

func attacks() []attack {
	return slices.Concat(fileAttacks(), forbidAttacks(), protectAttacks(), execAttacks(), processAttacks(), hostDeathAttacks(), networkAttacks(), kernelAttacks(),
		shareAttacks(), limitAttacks())
}

// TestAttack tries each attack at the level strict, which must stop it or not, as expected. Each
// day it tries a third of the attacks without a guard, where they must succeed, and a sixth at
// the other levels and as an ordinary user too. For a twelfth it compares the results with the
// table in SECURITY.md: each layer in the table stops the attack alone, and without all of them
// the attack succeeds. `make soak` does this for all of them.
func TestAttack(t *testing.T) {
	table := readTable(t)
	removeArena(t)
	asUser := func() cells { return nil }
	if os.Geteuid() == 0 {
		asUser = startAsUser(t)
	}
	found := runHere(t, table)
	maps.Copy(found, asUser())
	if isPart(t, found) {
		return
	}
	if t.Failed() || !selectedAll() || raceDetector {
		return
	}
	table.compare(t, found)
}

// who names the host's user in the table.
func who() string {
	if os.Geteuid() == 0 {
		return "root"
	}
	return "user"
}

func runHere(t *testing.T, table *table) cells {
	t.Helper()
	found := cells{}
	seed := soak.Seed(t)
	for i, a := range attacks() {
		if raceDetector && i%12 != 0 {
			continue // enough of them to race; all are tried without the detector
		}
		if a.rootOnly != "" && who() != "root" {
			continue
		}
		everywhere := soak.Today(seed, i, 6)
		if os.Getenv(partVariable) != "" && !everywhere {
			for _, level := range []Isolation{Basic, Isolated, Strict} {
				cell := cellKey{a.name, who(), level}
				found[cell] = table.cells[cell]
			}
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			l := newLauncher(t)
			if soak.Today(seed, i, 3) {
				if _, happened := a.try(t, l, Off, true, nil); !happened {
					t.Fatal("it does not succeed without a guard")
				}
			}
			for _, level := range []Isolation{Basic, Isolated, Strict} {
				cell := cellKey{a.name, who(), level}
				if found[cell] = table.cells[cell]; everywhere || level == Strict {
					found[cell] = a.judge(t, l, level, table.cells[cell], soak.Today(seed, i, 12))
				}
			}
			if !everywhere {
				return
			}
			// If every layer is available, auto is strict.
			if _, happened := a.try(t, l, Auto, false, nil); happened == a.stops(Strict) {
				t.Errorf("auto: it happened is %v, unlike strict", happened)
			}
		})
	}
	return found
}

// stops says whether a level is known to stop the attack.
func (a *attack) stops(level Isolation) bool {
	levels := a.root
	if who() == "user" && a.user != "" {
		levels = a.user
	}
	return strings.Contains(levels, level.String()[:1])
}

// judge makes the attempt at a level and returns what stops it. Unless it has to try the layers,
// it takes them from the table.
func (a *attack) judge(t *testing.T, l *Launcher, level Isolation, claim string, layersToo bool) string {
	t.Helper()
	layers, happened := a.try(t, l, level, false, nil)
	if happened == a.stops(level) {
		t.Errorf("%v: it happened is %v, want %v", level, happened, !happened)
	}
	switch {
	case happened:
		return nothing
	case a.by != "":
		return a.by
	case slices.Contains(layers, unmeasured):
		return string(LayerSeccomp)
	}
	if slices.Contains(layers, refusal) {
		return string(refusal)
	}
	if sets, ok := parseClaim(claim); ok && (raceDetector || !layersToo || a.holds(t, l, level, sets)) {
		return claim
	}
	return a.discover(t, l, level, layers)
}

// holds reports whether a claim is true: without all of its layers the attack
// succeeds, and each of its parts alone stops it.
func (a *attack) holds(t *testing.T, l *Launcher, level Isolation, sets [][]Layer) bool {
	t.Helper()
	var claimed []Layer
	for _, set := range sets {
		claimed = append(claimed, set...)
	}
	if _, happened := a.try(t, l, level, false, claimed); !happened {
		return false
	}
	for _, set := range sets {
		others := slices.DeleteFunc(slices.Clone(claimed), func(layer Layer) bool { return slices.Contains(set, layer) })
		if len(others) == 0 {
			continue // that is the attempt that failed
		}
		if _, happened := a.try(t, l, level, false, others); happened {
			return false
		}
	}
	return true
}

// discover finds out which layers stop the attack, each alone, or else which two.
func (a *attack) discover(t *testing.T, l *Launcher, level Isolation, layers []Layer) string {
	t.Helper()
	only := func(keep ...Layer) bool {
		for _, layer := range keep {
			keep = append(keep, needs(layer)...)
		}
		drop := slices.DeleteFunc(slices.Clone(layers), func(layer Layer) bool { return slices.Contains(keep, layer) })
		_, happened := a.try(t, l, level, false, drop)
		return !happened
	}
	var sets [][]Layer
	for _, layer := range layers {
		covered := slices.ContainsFunc(needs(layer), func(need Layer) bool {
			return slices.ContainsFunc(sets, func(set []Layer) bool { return slices.Contains(set, need) })
		})
		if !covered && only(layer) {
			sets = append(sets, []Layer{layer})
		}
	}
	if len(sets) > 0 {
		return claimText(sets)
	}
	for i, first := range layers {
		for _, second := range layers[i+1:] {
			if only(first, second) {
				sets = append(sets, []Layer{first, second})
			}
		}
	}
	if len(sets) == 0 {
		return "all together"
	}
	return claimText(sets)
}

// needs are the layers that a layer takes.
func needs(layer Layer) []Layer {
	namespaced := []Layer{LayerPIDNS, LayerNetNS, LayerIPCNS, LayerMounts, LayerProc}
	var list []Layer
	if layer == LayerProc {
		list = []Layer{LayerPIDNS, LayerMounts}
	}
	if os.Geteuid() != 0 && slices.Contains(namespaced, layer) {
		list = append(list, LayerUserNS)
	}
	return list
}

// refusal describes an attack whose program is not started.
const refusal Layer = "refused at start"

// unmeasured marks an attempt that is impossible here in any case.
const unmeasured Layer = "unmeasured"

// removable are the layers that can be left out.
func removable(on map[Layer]bool) []Layer {
	return slices.DeleteFunc(Layers(), func(layer Layer) bool {
		return !on[layer] || layer == LayerCgroup || slices.Contains(layersOf(Off), layer)
	})
}

// try makes one attempt and returns which layers were unavailable, and whether the attack had
// its effect.
func (a *attack) try(t *testing.T, l *Launcher, level Isolation, control bool, drop []Layer) (on []Layer, happened bool) {
	t.Helper()
	s := newScene(t)
	defer s.close()
	at := a.stage(s)
	args := append([]string{"attack"}, at.program...)
	p := s.profile(args)
	if at.profile != nil {
		at.profile(&p)
	}
	p.Confinement.Isolation = level
	var out string
	switch {
	case control && at.bare != nil:
		out = at.bare(t, args)
	default:
		if control && at.control != nil {
			at.control(&p)
		}
		on, out = at.run(t, l, p, drop)
	}
	if at.impossible {
		on = append(on, unmeasured)
	}
	if at.happened == nil {
		return on, strings.Contains(out, "done")
	}
	return on, at.happened(t, out)
}

// run starts a program without some of its layers. It returns the layers in force and the
// program's output.
func (at *attempt) run(t *testing.T, l *Launcher, p Profile, drop []Layer) (on []Layer, out string) {
	t.Helper()
	if err := p.check(); err != nil && p.Confinement.Isolation != Off {
		return []Layer{refusal}, "" // it is not started
	}
	on = removable(newPlan(&p, nil).on)
	if at.launch != nil {
		return on, at.launch(t, p, drop)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	proc, err := l.launchWithout(ctx, &p, drop)
	if err != nil {
		t.Fatalf("%v without %v: %v", p.Confinement.Isolation, drop, err)
	}
	defer proc.closeStdio()
	stop := context.AfterFunc(ctx, proc.Kill)
	defer stop()
	if at.during != nil {
		at.during(t, proc)
	}
	proc.Stdin.Close()
	var said bytes.Buffer
	drained := make(chan error, 1)
	go func() { // ends with the program, for which this waits
		_, err := said.ReadFrom(proc.Stderr)
		drained <- err
	}()
	text, err := io.ReadAll(proc.Stdout)
	must(t, err)
	must(t, <-drained)
	<-proc.Done()
	if ctx.Err() != nil {
		t.Errorf("%v without %v: it did not end: %.600s", p.Confinement.Isolation, drop, &said)
	}
	if os.Getenv(verboseVariable) != "" {
		t.Logf("%v without %v: %v; printed %.200q, said %.600q (%v)", p.Confinement.Isolation, drop, proc.Report, text, &said, proc.exit.State)
	}
	return on, string(text)
}

// ready reports whether a descriptor can be read now.
func ready(t *testing.T, fd int) bool {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Poll(fds, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n == 1 && fds[0].Revents&unix.POLLIN != 0
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func printed(text string) func(*testing.T, string) bool {
	return func(_ *testing.T, out string) bool { return strings.Contains(out, text) }
}

func (l cellKey) String() string { return fmt.Sprintf("%s as %s at %v", l.attack, l.who, l.level) }
