package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			platform := runtime.GOOS + "/" + runtime.GOARCH
			if a.json {
				return a.printJSON(map[string]string{"version": version, "go": runtime.Version(), "platform": platform})
			}
			fmt.Fprintf(a.stdout, "toolhost %s (%s, %s)\n", version, runtime.Version(), platform)
			return nil
		},
	}
}
