package results

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tend drops expired results at intervals, until Close.
func (d *Dir) tend() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.sweep()
		case <-d.closing:
			return
		}
	}
}

// sweep drops expired results.
func (d *Dir) sweep() {
	d.mu.Lock()
	dropped := make(map[string][]string)
	for folder, s := range d.users {
		dropped[folder] = s.dropWhile(d.expired)
	}
	d.mu.Unlock()
	for folder, files := range dropped {
		d.remove(folder, files)
	}
}

func (d *Dir) expired(k *kept) bool { return time.Since(k.made) >= d.ttl }

// load reads the results that an earlier run has kept. It removes files that were being
// written, that have expired, or that are from the future, since the clock was set
// back. It does not touch files with other names.
func (d *Dir) load() error {
	folders, err := d.list(".")
	if err != nil {
		return err
	}
	for _, folder := range folders {
		info, err := d.root.Lstat(folder)
		if err != nil || !info.IsDir() || !folderPattern().MatchString(folder) {
			continue
		}
		if err := d.loadUser(folder); err != nil {
			d.logger.Warn("results of an earlier run cannot be read", "error", err)
		}
	}
	return nil
}

func (d *Dir) loadUser(folder string) error {
	files, err := d.list(folder)
	if err != nil {
		return err
	}
	s := d.shelf(folder)
	var useless []string
	for _, file := range files {
		handle, rest, _ := strings.Cut(file, ".")
		if !handlePattern().MatchString(handle) {
			continue
		}
		k, ok := d.loadFile(folder, file, handle, rest)
		if !ok || s.index(handle) >= 0 {
			useless = append(useless, file)
			continue
		}
		s.kept = append(s.kept, k)
		s.bytes += inBlocks(k.size)
	}
	slices.SortFunc(s.kept, func(a, b *kept) int { return a.made.Compare(b.made) })
	d.remove(folder, append(useless, s.fit(d.quota)...)) // the quota may have changed
	_ = d.root.Remove(folder)                            // if nothing is in it
	return nil
}

// loadFile returns the result of a file, and false if the file is useless.
func (d *Dir) loadFile(folder, file, handle, rest string) (*kept, bool) {
	size, isUntrusted := strings.CutSuffix(rest, untrusted)
	whole, err := strconv.ParseInt(size, 10, 64)
	info, statErr := d.root.Lstat(path.Join(folder, file))
	if err != nil || statErr != nil || !info.Mode().IsRegular() || info.Size() > whole {
		return nil, false
	}
	k := &kept{handle: handle, file: file, size: info.Size(), whole: whole, untrusted: isUntrusted, made: info.ModTime()}
	return k, !d.expired(k) && !k.made.After(time.Now())
}

// list returns the names in a directory.
func (d *Dir) list(folder string) ([]string, error) {
	f, err := d.root.Open(folder)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}
