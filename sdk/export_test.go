package sdk

// Stop ends the plugin as Serve does.
func (p *Plugin) Stop() { p.stop() }
