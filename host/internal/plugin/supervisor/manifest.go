package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/toolhost/toolhost/sdk/tool"
)

// maxManifest bounds a manifest file, in bytes.
const maxManifest = 64 << 20

// manifest is what is known of a plugin without starting it. It holds for one
// content of the binary and one set of settings.
type manifest struct {
	// File is the binary when Digest was computed: as long as it is the same,
	// the binary need not be read.
	File    fileID      `json:"file"`
	Digest  string      `json:"digest"`
	Version string      `json:"version"`
	Tools   []tool.Spec `json:"tools"`
	// Schema is that of the settings, so that they can be evaluated.
	Schema []byte `json:"schema,omitempty"`
	// Settings is the digest of the settings.
	Settings string `json:"settings"`
}

func manifestPath(stateDir, plugin string) string {
	return filepath.Join(stateDir, "manifests", plugin+".json")
}

// loadManifest returns nil without an error if there is none.
func loadManifest(path string) (*manifest, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // a plugin that was never started has none
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

// save replaces the file as a whole: a host that dies meanwhile leaves the old
// one.
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

// program opens the plugin's binary, and believes the manifest about its
// digest as long as the file is the same. It does not if the digest is pinned:
// whoever can write the manifest may not choose what it is compared with. Nor
// does any start.
func (m *manifest) program(p Plugin) (*binary, error) {
	var hashes hashCache
	if m.File != (fileID{}) && p.SHA256 == "" {
		hashes.put(m.File, m.Digest)
	}
	return openBinary(p, &hashes)
}

// recall publishes the tools of the manifest cache, if it holds those of this
// binary with these settings. It starts nothing.
func (k *keeper) recall() bool {
	m, err := loadManifest(manifestPath(k.s.opts.StateDir, k.plugin.Name))
	if err != nil {
		k.log.Warn("what is known of the plugin cannot be read", "error", err)
	}
	if m == nil {
		return false
	}
	program, err := m.program(k.plugin)
	if err != nil {
		return false // the start will say why
	}
	defer program.file.Close()
	if program.digest != m.Digest {
		return false
	}
	settings, err := k.settings(m.Schema)
	if err != nil || digestOf(settings) != m.Settings {
		return false
	}
	k.learn(learned{program: m.Digest, schema: m.Schema, outcome: m.Settings})
	k.mu.Lock()
	k.digest, k.version = m.Digest, m.Version
	k.mu.Unlock()
	k.publish(m.Digest, m.Tools)
	k.recognize(m, program.id)
	return true
}

// recognize notes in a manifest which file has its digest, if that is not noted
// yet: the file was too new when the plugin was started, or was put there anew.
// Without it each host would read the whole file. A failure costs that time only.
func (k *keeper) recognize(m *manifest, id fileID) {
	if m.File == id || !id.settled() {
		return
	}
	m.File = id
	if err := m.save(manifestPath(k.s.opts.StateDir, k.plugin.Name)); err != nil {
		k.log.Warn("what is known of the plugin cannot be kept", "error", err)
	}
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
