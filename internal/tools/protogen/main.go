// Command protogen compiles proto files and writes the generated Go beside
// them. It needs no protoc and no network: the compiler and both generators
// are Go modules.
//
// Usage: protogen ROOT FILE...
//
// Each FILE is relative to ROOT, as an import statement would name it.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: protogen ROOT FILE...")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root string, files []string) error {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	linked, err := compiler.Compile(ctx, files...)
	if err != nil {
		return err
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: files,
		Parameter:      proto.String("paths=source_relative"),
	}
	seen := map[string]bool{}
	for _, f := range linked {
		request.ProtoFile = appendFile(request.ProtoFile, seen, f)
	}
	input, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	for _, generator := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		if err := generate(ctx, generator, input, root); err != nil {
			return fmt.Errorf("%s: %w", generator, err)
		}
	}
	return nil
}

// appendFile appends f to files, after everything that it imports.
func appendFile(files []*descriptorpb.FileDescriptorProto, seen map[string]bool, f protoreflect.FileDescriptor) []*descriptorpb.FileDescriptorProto {
	if seen[f.Path()] {
		return files
	}
	seen[f.Path()] = true
	for i := range f.Imports().Len() {
		files = appendFile(files, seen, f.Imports().Get(i).FileDescriptor)
	}
	if compiled, ok := f.(linker.Result); ok {
		return append(files, compiled.FileDescriptorProto()) // keeps the comments
	}
	return append(files, protodesc.ToFileDescriptorProto(f))
}

// generate runs one protoc plugin on input and writes what it answers.
func generate(ctx context.Context, generator string, input []byte, root string) error {
	cmd := exec.CommandContext(ctx, "go", "tool", generator)
	cmd.Stdin = bytes.NewReader(input)
	cmd.Stderr = os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(output, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", response.GetError())
	}
	for _, f := range response.GetFile() {
		if err := os.WriteFile(filepath.Join(root, f.GetName()), []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
