package main

// relist notes that the server's list of tools has changed.
func (s *server) relist(*session) {
	s.log.Warn("the MCP server has other tools now; the plugin offers them when it starts again")
}
