package config

import (
	"encoding/json"
	"strconv"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
)

// settings are the settings of one plugin, to be checked against its schema. They do
// not change, so several goroutines may use them.
type settings struct {
	root    *setting
	files   map[string]*hcl.File
	secrets *secrets
}

// settings reads the config block of a plugin. It evaluates the expressions, so that
// their mistakes are reported with all others. The schema checks the types later.
func (d *decoder) settings(block pluginBlock) *settings {
	s := &settings{
		root:    &setting{at: block.Range, kind: objectSetting},
		files:   d.files,
		secrets: d.secrets,
	}
	for _, config := range block.Config {
		if body, ok := config.Body.(*hclsyntax.Body); ok { // the parser returns no other type
			s.root = d.settingBody(body, config.Range)
		}
	}
	return s
}

// checkSettings checks a plugin's settings while the configuration is loaded, if the
// schema is known.
func (d *decoder) checkSettings(stateDir string, p supervisor.Plugin, s *settings) {
	if d.opts.SettingsSchema == nil {
		return
	}
	schema, known := d.opts.SettingsSchema(stateDir, p)
	if !known {
		return
	}
	_, mistakes, err := s.check(schema)
	if err != nil {
		d.mistake(s.root.at, "Unusable settings schema", "The settings of plugin %q cannot be checked: %v.", p.Name, err)
	}
	d.mistakes = append(d.mistakes, mistakes...)
}

// evaluate implements [supervisor.Plugin.Settings]. It checks the settings against the
// schema that the plugin publishes, and returns them as a JSON object with the
// defaults of the schema. If the settings have mistakes, the error is an [*Error].
func (s *settings) evaluate(schema []byte) ([]byte, error) {
	value, mistakes, err := s.check(schema)
	if err != nil {
		return nil, err
	}
	if err := newError(mistakes, s.files, s.secrets); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// check returns the value of the settings, which is valid only if there are no
// mistakes. It returns an error if the schema is invalid.
func (s *settings) check(schema []byte) (map[string]any, hcl.Diagnostics, error) {
	parsed, err := parseSettingSchema(schema)
	if err != nil {
		return nil, nil, err
	}
	c := &settingCheck{}
	if parsed == nil {
		if len(s.root.fields) > 0 {
			c.mistake(s.root.at, "Unexpected settings", "This plugin has no settings. Remove the config block.")
		}
		return map[string]any{}, c.mistakes, nil
	}
	return c.object(parsed, s.root), c.mistakes, nil
}

// locate implements [supervisor.Plugin.Locate]. It returns the place of a path into the
// settings, or the nearest place around it.
func (s *settings) locate(path []string) string {
	at, current := s.root.at, s.root
	for _, step := range path {
		i, err := strconv.Atoi(step)
		isElement := err == nil && i >= 0 && i < len(current.elements)
		if current.kind == blocksSetting && !isElement {
			current = current.elements[0] // a single block is an object
		}
		if f := current.fields[step]; f != nil {
			at, current = f.name, f.setting
		} else if isElement {
			current = current.elements[i]
			at = current.at
		} else {
			break
		}
	}
	return diag.Place(at)
}
