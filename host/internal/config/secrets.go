package config

import (
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/internal/lazyregexp"
)

// minSecret is the least length of a value that is hidden everywhere. A shorter value is no
// secret and may occur in any text by chance; it is hidden only in quotes.
const minSecret = 4

// minLine is the least length of a line of a secret block's value that is hidden by itself.
const minLine = 8

// secrets collects the values of env() and file() and of secret blocks.
type secrets struct {
	values []string
}

// add adds a value, and the value without space around it: a file usually ends with a
// newline, which plugins trim.
func (s *secrets) add(value string) {
	for _, v := range []string{value, strings.TrimSpace(value)} {
		if v != "" && !slices.Contains(s.values, v) {
			s.values = append(s.values, v)
		}
	}
}

// addLines adds a value and its longer lines, as a log has them.
func (s *secrets) addLines(value string) {
	s.add(value)
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); len(line) >= minLine {
			s.add(line)
		}
	}
}

// long returns the secrets that are hidden everywhere.
func (s *secrets) long() []string {
	return slices.DeleteFunc(slices.Clone(s.values), func(v string) bool { return len(v) < minSecret })
}

// in returns text with the secrets hidden.
func (s *secrets) in(text string) string {
	const hidden = "(hidden)"
	byLength := slices.SortedFunc(slices.Values(s.values), func(a, b string) int { return len(b) - len(a) })
	for _, v := range byLength {
		quoted := strconv.Quote(v)
		text = strings.ReplaceAll(text, quoted, hidden)
		if len(v) >= minSecret {
			text = strings.ReplaceAll(text, v, hidden)
			text = strings.ReplaceAll(text, quoted[1:len(quoted)-1], hidden)
		}
	}
	return text
}

// Hide returns text with the [Config.Secrets] hidden, and those of [Config.AlsoHide].
func (c *Config) Hide(text string) string {
	values := c.Secrets
	if more := c.later.values(); len(more) > 0 {
		values = slices.Concat(values, more)
	}
	if len(values) == 0 {
		return text
	}
	hide := secrets{values: values}
	return hide.in(text)
}

// laterSecrets are secrets that came with a reload. It is safe for concurrent use, and nil has none.
type laterSecrets struct{ all atomic.Pointer[[]string] }

func (l *laterSecrets) values() []string {
	if l == nil {
		return nil
	}
	if all := l.all.Load(); all != nil {
		return *all
	}
	return nil
}

// AlsoHide makes [Config.Hide], and what [Config.Redact] has returned, hide the secrets of a later
// configuration, which a reload is about to apply. They stay hidden. It must not be called by several
// goroutines at once.
func (c *Config) AlsoHide(next *Config) {
	if c.later == nil { // it was not loaded
		c.later = new(laterSecrets)
	}
	more := slices.Clone(c.later.values())
	for _, value := range next.Secrets {
		if !slices.Contains(c.Secrets, value) && !slices.Contains(more, value) {
			more = append(more, value)
		}
	}
	c.later.all.Store(&more)
}

// Redact returns a writer that writes each line to w as [Config.Hide] returns it. Logs use it, since
// plugins may print their settings.
func (c *Config) Redact(w io.Writer) io.Writer { return &redactor{w: w, hide: c.Hide} }

type redactor struct {
	w    io.Writer
	hide func(string) string
}

// Write implements [io.Writer].
func (r *redactor) Write(line []byte) (int, error) {
	if _, err := io.WriteString(r.w, r.hide(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}

// secretName matches the names that the sdk lets plugins request.
var secretName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// secretSource is where the value of a secret comes from.
type secretSource struct {
	value   string // "" if a command prints it
	perUser bool   // each user sets a value
}

// grantable reads the secret blocks and returns their sources by name. The values are
// hidden like those of env(), also if they are written out in the file.
func (d *decoder) grantable(blocks []secretBlock) map[string]secretSource {
	sources := make(map[string]secretSource)
	firsts := make(map[string]hcl.Range)
	for _, block := range blocks {
		if !d.unique("secret", block.Name, block.NameRange, firsts) {
			continue
		}
		if !secretName().MatchString(block.Name) {
			d.mistake(block.NameRange, "Invalid secret name",
				"%q cannot be a secret's name: expected a letter or digit, then at most 63 letters, digits, _, - and .", block.Name)
		}
		d.oneSource(block)
		_, perUser := d.choice(block.For, "user")
		value, _ := d.text(block.Value, "a text")
		d.secrets.addLines(value)
		sources[block.Name] = secretSource{value, perUser}
		if argv := d.argv(block.Exec); len(argv) > 0 {
			d.printers = append(d.printers, Command{Secret: block.Name, Place: diag.Place(block.Exec.NameRange), Argv: argv})
		}
	}
	return sources
}

// secretFunction is secret("name") in the settings of a plugin: the value of a secret block, which
// the plugin gets as a part of its settings. It is for what needs the value outside of a call.
func (d *decoder) secretFunction() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "name", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			name := args[0].AsString()
			source, known := d.secretSources[name]
			switch {
			case !known:
				return cty.NilVal, function.NewArgErrorf(0, "there is no secret block %q.%s", name, diag.DidYouMean(name, slices.Sorted(maps.Keys(d.secretSources))))
			case source.perUser:
				return cty.NilVal, function.NewArgErrorf(0, "each user sets a value of secret %q, so it cannot be a setting of the plugin; a credential for a server can be added by inject of the network block", name)
			case source.value == "":
				return cty.NilVal, function.NewArgErrorf(0, "secret %q has no value in the configuration: give its block value = env(\"NAME\") or value = file(\"path\") instead of exec", name)
			}
			d.secretsUsed = append(d.secretsUsed, name)
			return cty.StringVal(strings.TrimSpace(source.value)), nil
		},
	})
}

// oneSource reports a secret without a source of its value, or with several.
func (d *decoder) oneSource(block secretBlock) {
	var given []*hcl.Attribute
	for _, attr := range []*hcl.Attribute{block.Value, block.Exec, block.For} {
		if !d.absent(attr) {
			given = append(given, attr)
		}
	}
	switch {
	case len(given) == 0:
		d.mistake(block.Range, "Missing value", "Secret %q needs a value: add value = env(\"NAME\"), value = file(\"path\") or exec = [\"/usr/bin/pass\", \"show\", \"NAME\"], "+
			"or for = \"user\" if each user sets one.", block.Name)
	case len(given) > 1 && given[1] == block.For:
		d.mistake(given[0].NameRange, "Two values", "Each user sets a value for secret %q (%s). Remove %s, or for.", block.Name, diag.Place(block.For.NameRange), given[0].Name)
	case len(given) > 1:
		d.mistake(given[1].NameRange, "Two values", "Secret %q has a %s (%s). Remove one of them.", block.Name, given[0].Name, diag.Place(given[0].NameRange))
	}
}

// granted reads the secrets that a plugin may request: their values by name, and the names of those
// that users set.
func (d *decoder) granted(attr *hcl.Attribute, sources map[string]secretSource) (values map[string]string, ofUsers []string) {
	if attr == nil {
		return nil, nil
	}
	values = make(map[string]string)
	for _, w := range d.words(attr, `a list of secrets such as ["brave"]`) {
		source, known := sources[w.text]
		_, twice := values[w.text]
		switch {
		case !known:
			d.mistake(w.expr.Range(), "Unknown secret", "There is no secret block %s.%s", quote(w.expr, w.text),
				diag.DidYouMean(w.text, slices.Sorted(maps.Keys(sources))))
			continue
		case twice || slices.Contains(ofUsers, w.text):
			d.mistake(w.expr.Range(), "Duplicate secret", "%s is already in the list.", quote(w.expr, w.text))
			continue
		case source.perUser:
			ofUsers = append(ofUsers, w.text)
		default:
			values[w.text] = source.value
		}
		d.secretsUsed = append(d.secretsUsed, w.text)
	}
	return values, ofUsers
}
