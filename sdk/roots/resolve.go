package roots

import (
	"errors"
	"path"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/sdk/tool"
)

// maxLinks is how many symbolic links one name may lead through, as in Linux.
const maxLinks = 40

// resolve finds the place that name leads to once all symbolic links are
// followed; if last is false, a link at its very end is not. [os.Root] would follow them itself, but refuses every absolute
// one, also those that stay inside, and would not let us see a secret behind a
// harmless name. What resolve returns is used through the os.Root all the same:
// if a link is swapped afterwards, the file is still one below the folder.
func (r *Roots) resolve(name string, last bool) (place, error) {
	at, err := r.locate(name)
	if err != nil {
		return place{}, err
	}
	pending := strings.Split(at.rel, "/")
	done := place{at.folder, "."}
	links := 0
	for len(pending) > 0 {
		part := pending[0]
		pending = pending[1:]
		if part == "" || part == "." {
			continue
		}
		if part == ".." {
			if done.rel == "." {
				return place{}, r.denied(name)
			}
			done.rel = path.Dir(done.rel)
			continue
		}

		next := place{done.folder, path.Join(done.rel, part)}
		target, err := next.root.Readlink(next.rel)
		isLink := !errors.Is(err, syscall.EINVAL)
		if !isLink || (!last && len(pending) == 0) {
			done = next
			continue
		}
		if err != nil {
			return place{}, r.explain(name, err)
		}
		// The name of the link counts as well: ".env" may be a link to a file
		// with a harmless name.
		if r.secrets.match(next.rel) {
			return place{}, r.secret(name)
		}
		links++
		if links > maxLinks {
			return place{}, tool.Errorf(tool.Failed, "Failed to read file: too many symbolic links")
		}
		if path.IsAbs(target) {
			inside, ok := r.below(target)
			if !ok {
				return place{}, r.denied(name)
			}
			done, target = place{inside.folder, "."}, inside.rel
		}
		pending = append(strings.Split(target, "/"), pending...)
	}
	if r.secrets.match(done.rel) {
		return place{}, r.secret(name)
	}
	return done, nil
}
