package kafka

import "time"

// watch looks after the source once a second.
func (s *Source) watch() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-s.life.Done():
			return
		case <-ticker.C:
		}
		s.replaceMember()
		s.commits.rouse() // control records move a lane on without a settlement
	}
}
