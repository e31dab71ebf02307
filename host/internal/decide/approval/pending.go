package approval

// Pending returns the number of questions that wait for an answer.
func (s *Service) Pending() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.live {
		if !l.woken {
			n++
		}
	}
	return n
}
