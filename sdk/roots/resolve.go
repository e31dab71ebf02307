package roots

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"
)

// maxLinks is how many symbolic links one name can pass through, as on Linux.
const maxLinks = 40

// resolve returns the place that name leads to through all symbolic links. If last is false,
// it does not follow a link at the end. [os.Root] follows links itself, but refuses absolute
// ones even inside, and would hide a secret behind a harmless name. The result is used through
// the os.Root, so a link that is swapped later still leads to a file below the folder.
func (r *Roots) resolve(name string, last bool) (place, error) {
	at, missing, err := r.follow(name, last)
	if err == nil && missing != "" {
		err = fs.ErrNotExist
	}
	if err != nil {
		return place{}, r.explain(name, err)
	}
	return at, nil
}

// follow is resolve for a name that may not exist. missing is the part that does not exist; it
// is slash-separated and never begins with "..". The error is a [*tool.Error] or a system
// error.
func (r *Roots) follow(name string, last bool) (at place, missing string, err error) {
	start, err := r.locate(name)
	if err != nil {
		return place{}, "", err
	}
	pending := strings.Split(start.rel, "/")
	done := place{start.folder, "."}
	links := 0
	for len(pending) > 0 {
		part := pending[0]
		pending = pending[1:]
		if part == "" || part == "." {
			continue
		}
		if part == ".." {
			if done.rel == "." {
				return place{}, "", r.denied(name)
			}
			done.rel = path.Dir(done.rel)
			continue
		}

		next := place{done.folder, path.Join(done.rel, part)}
		target, err := next.root.Readlink(next.rel)
		if errors.Is(err, fs.ErrNotExist) {
			// The system does not resolve ".." after a missing name.
			missing = strings.Join(append([]string{part}, pending...), "/")
			if strings.Contains("/"+missing+"/", "/../") {
				return place{}, "", err
			}
			if refused := r.refuses(place{done.folder, path.Join(done.rel, missing)}, name); refused != nil {
				return place{}, "", refused
			}
			return done, path.Clean(missing), nil
		}
		isLink := !errors.Is(err, syscall.EINVAL)
		if !isLink || (!last && len(pending) == 0) {
			done = next
			continue
		}
		if err != nil {
			return place{}, "", err
		}
		// The link's own name counts as well: ".env" may be a link to a file with a harmless
		// name.
		if refused := r.refuses(next, name); refused != nil {
			return place{}, "", refused
		}
		links++
		if links > maxLinks {
			return place{}, "", syscall.ELOOP
		}
		if path.IsAbs(target) {
			inside, ok := r.below(target)
			if !ok {
				return place{}, "", r.denied(name)
			}
			done, target = place{inside.folder, "."}, inside.rel
		}
		pending = append(strings.Split(target, "/"), pending...)
	}
	if refused := r.refuses(done, name); refused != nil {
		return place{}, "", refused
	}
	return done, "", nil
}
