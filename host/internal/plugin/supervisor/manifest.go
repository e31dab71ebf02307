package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/toolhost/toolhost/host/internal/plugin/process"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxManifest bounds a manifest file, in bytes.
const maxManifest = 64 << 20

// manifest is the file that makes the tools of a plugin known without a start. It is
// valid for one content of the program and one set of settings.
type manifest struct {
	// File identifies the program file that had Digest. As long as the file is the
	// same, it is not read again.
	File    process.FileID `json:"file"`
	Digest  string         `json:"digest"`
	Version string         `json:"version"`
	Tools   []tool.Spec    `json:"tools"`
	// Schema is the JSON Schema of the settings, to evaluate them.
	Schema []byte `json:"schema,omitempty"`
	// Settings is the digest of the settings and of whether there was a network.
	Settings string `json:"settings"`
	// Sound identifies the host program that has found the schemas of all tools sound.
	Sound process.FileID `json:"sound"`
}

// Manifests is the directory of what is known of the plugins, in the state directory.
const Manifests = "manifests"

func manifestPath(stateDir, plugin string) string {
	return filepath.Join(stateDir, Manifests, plugin+".json")
}

// loadManifest returns nil without an error if there is no manifest.
func loadManifest(path string) (*manifest, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxManifest {
		return nil, fmt.Errorf("manifest %s is larger than %v", path, tool.ByteSize(maxManifest))
	}
	m := new(manifest)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", path, err)
	}
	return m, nil
}

// save replaces the file as a whole: if the host dies meanwhile, the old file remains.
func (m *manifest) save(path string) (err error) {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".manifest-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return f.Close()
}

// currentManifest returns the manifest of a plugin, or nil if there is none for its present
// program. renewed reports whether the program was hashed, and its file need not be hashed again
// once the manifest is saved.
func currentManifest(stateDir string, p Plugin) (m *manifest, renewed bool, err error) {
	m, err = loadManifest(manifestPath(stateDir, p.Name))
	if err != nil || m == nil {
		return nil, false, err
	}
	id, ok := m.identify(p)
	if !ok {
		return nil, false, nil
	}
	if m.File != id && id.Settled() {
		m.File, renewed = id, true
	}
	return m, renewed, nil
}

// identify returns the identity of the plugin's present program, and reports whether the
// manifest is that program's. If the digest is pinned, it hashes the program instead of
// trusting the manifest, because a manifest can be forged. So does every start.
func (m *manifest) identify(p Plugin) (process.FileID, bool) {
	var hashes process.Hashes
	if m.File != (process.FileID{}) && p.SHA256 == "" {
		hashes.Put(m.File, m.Digest)
	}
	program, err := process.OpenProgram(p.Path, p.SHA256, &hashes)
	if err != nil {
		return process.FileID{}, false // a start reports the reason
	}
	defer program.Close()
	return program.ID, program.Digest == m.Digest
}

// loadTools publishes the saved tools of the plugin, if they are those of this program
// with these settings, and reports whether they are. It starts nothing.
func (m *manager) loadTools() bool {
	saved, renewed, err := currentManifest(m.s.opts.StateDir, m.plugin)
	if err != nil {
		m.log.Warn("the plugin's saved tools cannot be read", "error", err)
	}
	if saved == nil {
		return false
	}
	settings, err := m.settings(saved.Schema)
	if err != nil || conditionsOf(&m.plugin, settings) != saved.Settings {
		return false
	}
	m.learn(learned{program: saved.Digest, schema: saved.Schema, outcome: saved.Settings})
	m.mu.Lock()
	m.digest, m.version = saved.Digest, saved.Version
	m.mu.Unlock()
	if renewed { // by the host alone: other commands may run as another account
		m.keep(saved)
	}
	tools := m.publication(saved.Digest, saved.Tools)
	tools.Sound = saved.soundFor(m.s.host)
	if m.publish(tools) {
		m.keepSound(saved)
	}
	return true
}

// manifestOf returns the manifest of a running plugin, from which the next host lists the
// tools without starting it.
func (m *manager) manifestOf(i *instance, program *process.Program, settings []byte) *manifest {
	saved := &manifest{
		Digest:   i.digest,
		Version:  i.about.Version,
		Tools:    i.about.Tools,
		Schema:   i.about.Schema,
		Settings: conditionsOf(&m.plugin, settings),
	}
	if program.ID.Settled() {
		saved.File = program.ID
	}
	return saved
}

// keepSound saves that this host has found the tools of a manifest sound.
func (m *manager) keepSound(saved *manifest) {
	if saved.Sound != m.s.host {
		saved.Sound = m.s.host
		m.keep(saved)
	}
}

// soundFor reports whether this program of the host has found the schemas of all tools sound.
func (m *manifest) soundFor(host process.FileID) bool {
	return m.Sound == host && host != process.FileID{}
}

// hostProgram returns the identity of this program, or the zero FileID if it is not known.
func hostProgram() process.FileID {
	path, err := sandbox.SelfPath()
	if err != nil {
		return process.FileID{}
	}
	return process.LookAt(path)
}

// keep saves a manifest of the plugin. A failure costs only time at the next start.
func (m *manager) keep(saved *manifest) {
	if err := saved.save(manifestPath(m.s.opts.StateDir, m.plugin.Name)); err != nil {
		m.log.Warn("the plugin's tools cannot be saved for the next start", "error", err)
	}
}
