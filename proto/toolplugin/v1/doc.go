// Package toolpluginv1 is the contract between host and plugins, generated
// from plugin.proto by `make proto`, and what the two must agree on before
// they speak it. Only the sdk and the host's supervisor import it; everybody
// else speaks package tool.
package toolpluginv1
