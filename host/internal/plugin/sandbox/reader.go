package sandbox

import "slices"

// Reader is what [Confinement.AsReader] adds to a confinement.
type Reader struct {
	On bool
	// OfWriter is set if the other process may write to the workspace. Then both run as the owner of
	// the workspace, so that both can read the same files.
	OfWriter bool
}

// AsReader returns the confinement of a second process of the same program that can change nothing:
// it reads what the other process reads and writes, and writes only its own directories and
// temporary files. It has no network, unless network keeps that of c.
//
// The program does not start if a layer that the proof needs is missing, whatever WarnOnMissing
// says.
func (c Confinement) AsReader(network bool) Confinement {
	c.Reader = Reader{On: true, OfWriter: c.Workspace == WriteWorkspace}
	if c.Workspace == WriteWorkspace {
		c.Workspace = ReadWorkspace
	}
	c.Read, c.Write = slices.Concat(c.Read, c.Write), nil
	if !network {
		c.Network = NetworkNone
	}
	return c
}

// ReaderLayers returns the layers without which nothing proves that the program of
// [Confinement.AsReader] changes nothing. Each closes ways that the others leave open: Landlock does
// not cover the mode and the owner of a file, a read-only mount covers neither named pipes nor
// sockets, which only the filter of system calls does, and without namespaces a program reaches
// other processes and their queues.
func ReaderLayers(network bool) []Layer {
	layers := []Layer{LayerPIDNS, LayerIPCNS, LayerMounts, LayerCaps, LayerLandlock, LayerSeccomp}
	if !network {
		layers = append(layers, LayerNetNS)
	}
	return layers
}

// proof returns the layers that the confinement requires whatever WarnOnMissing says.
func (c *Confinement) proof() []Layer {
	if !c.Reader.On {
		return nil
	}
	return ReaderLayers(c.Network != NetworkNone)
}

// writesWorkspace reports whether the program, or the one that it reads for, may write to the
// workspace.
func (c *Confinement) writesWorkspace() bool {
	return c.Workspace == WriteWorkspace || c.Workspace == ReadWorkspace && c.Reader.OfWriter
}
