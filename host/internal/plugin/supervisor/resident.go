package supervisor

import (
	"os"

	"github.com/toolhost/toolhost/internal/proctree"
)

// Resident returns the resident memory of the processes of each plugin, with all that they started, by
// the plugin's name. A plugin without processes has 0. known is false if this system does not tell.
func (s *Supervisor) Resident() (bytes map[string]int64, known bool) {
	bytes = make(map[string]int64)
	for name, pids := range s.pids() {
		bytes[name] = 0
		for _, pid := range pids {
			size, _ := proctree.Resident(pid) // it may just have ended
			bytes[name] += size
		}
	}
	_, known = proctree.Resident(os.Getpid())
	return bytes, known
}

// pids returns the process ids of each plugin.
func (s *Supervisor) pids() map[string][]int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make(map[string][]int)
	for name, m := range s.managers {
		all[name] = m.pids()
		if old := s.replaced[name]; old != nil {
			all[name] = append(all[name], old.pids()...)
		}
	}
	return all
}

func (m *manager) pids() (all []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.pools() {
		for _, i := range p.instances {
			all = append(all, i.proc.PID())
		}
	}
	return all
}
