package reaper

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// MaxOrder bounds an order. The kernel accepts at most about 6 MiB of arguments and environment.
const MaxOrder = 8 << 20

// Order is the plugin's order to its reaper. No string has a NUL byte.
type Order struct {
	Parent        int      // the plugin's process id
	Path          string   // the file to execute
	Args          []string // argv
	Env           []string
	Dir           string
	Limits        []Limit
	Rules         *Rules
	RulesOptional bool // continue without rules if the kernel does not support them
	Terminal      bool // standard input becomes the controlling terminal
}

// Limit is a resource limit of the command.
type Limit struct {
	Resource   int
	Soft, Hard uint64
}

// Rules are the paths of landlock.Rules.
type Rules struct {
	Read, Execute, Write, Devices []string
}

// lists are the rules in the order in which they travel.
func (r *Rules) lists() []*[]string {
	return []*[]string{&r.Read, &r.Execute, &r.Write, &r.Devices}
}

// Encode returns the order in transport form: its length, and strings that end in NUL. Decoding
// JSON would take longer than the rest of the reaper's work.
func (o *Order) Encode() ([]byte, error) {
	e := encoder{0, 0, 0, 0}
	e.number(uint64(o.Parent))
	e.text(o.Path)
	e.list(o.Args)
	e.list(o.Env)
	e.text(o.Dir)
	e.number(uint64(len(o.Limits)))
	for _, l := range o.Limits {
		e.number(uint64(l.Resource))
		e.number(l.Soft)
		e.number(l.Hard)
	}
	e.flag(o.Rules != nil)
	if o.Rules != nil {
		for _, list := range o.Rules.lists() {
			e.list(*list)
		}
	}
	e.flag(o.RulesOptional)
	e.flag(o.Terminal)
	if len(e) > MaxOrder {
		return nil, fmt.Errorf("arguments and environment take %d bytes, more than a program can get", len(e))
	}
	binary.BigEndian.PutUint32(e, uint32(len(e)-4))
	return e, nil
}

type encoder []byte

func (e *encoder) text(s string)   { *e = append(append(*e, s...), 0) }
func (e *encoder) number(n uint64) { e.text(strconv.FormatUint(n, 10)) }

func (e *encoder) flag(is bool) { e.text(strconv.FormatBool(is)) }

func (e *encoder) list(all []string) {
	e.number(uint64(len(all)))
	for _, s := range all {
		e.text(s)
	}
}

var errOrder = errors.New("the order cannot be read")

// DecodeOrder reads one order.
func DecodeOrder(r io.Reader) (*Order, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > MaxOrder {
		return nil, errOrder
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, err
	}
	d := decoder{rest: string(text)}
	o := &Order{Parent: int(d.number()), Path: d.text(), Args: d.list(), Env: d.list(), Dir: d.text()}
	for range d.count() {
		o.Limits = append(o.Limits, Limit{Resource: int(d.number()), Soft: d.number(), Hard: d.number()})
	}
	if d.flag() {
		o.Rules = &Rules{}
		for _, list := range o.Rules.lists() {
			*list = d.list()
		}
	}
	o.RulesOptional, o.Terminal = d.flag(), d.flag()
	if d.failed || d.rest != "" || o.Parent <= 0 || o.Path == "" || len(o.Args) == 0 {
		return nil, errOrder
	}
	return o, nil
}

// decoder takes strings from the front of rest.
type decoder struct {
	rest   string
	failed bool
}

func (d *decoder) text() string {
	s, rest, ok := strings.Cut(d.rest, "\x00")
	d.rest, d.failed = rest, d.failed || !ok
	return s
}

func (d *decoder) number() uint64 {
	n, err := strconv.ParseUint(d.text(), 10, 64)
	d.failed = d.failed || err != nil
	return n
}

// count is the number of strings that still follow.
func (d *decoder) count() int {
	n := d.number()
	if n > uint64(len(d.rest)) {
		d.failed = true
		return 0
	}
	return int(n)
}

func (d *decoder) flag() bool {
	is, err := strconv.ParseBool(d.text())
	d.failed = d.failed || err != nil
	return is
}

func (d *decoder) list() []string {
	n := d.count()
	if n == 0 {
		return nil
	}
	all := make([]string, n)
	for i := range all {
		all[i] = d.text()
	}
	return all
}
