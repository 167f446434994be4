package s3fs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// View returns the objects below prefix as an fs.FS, for everything in Go that
// reads one: fs.WalkDir, fs.Glob, template.ParseFS. A slash in a key makes a
// directory; where a key "a" and keys "a/..." exist, the object is shown, as a
// tree has room for one only. The prefix is taken as one whether or not its key ends in a slash.
// Keys that are no valid path, such as "a//b", cannot be named and are left out.
//
// An fs.FS has no place for a context, so ctx serves every call made through
// the view. Files read as from Open; Stat does not read them.
func (f *FS) View(ctx context.Context, prefix Path) fs.FS {
	if prefix.Key != "" && !strings.HasSuffix(prefix.Key, "/") {
		prefix.Key += "/"
	}
	return &view{f: f, ctx: ctx, prefix: prefix}
}

type view struct {
	f      *FS
	ctx    context.Context // see View
	prefix Path
}

var (
	_ fs.StatFS     = (*view)(nil)
	_ fs.ReadFileFS = (*view)(nil)
	_ fs.ReadDirFS  = (*view)(nil)
)

func (v *view) path(op, name string) (Path, error) {
	if !fs.ValidPath(name) {
		return Path{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	if name == "." {
		return v.prefix, nil
	}
	return Path{Bucket: v.prefix.Bucket, Key: v.prefix.Key + name}, nil
}

// Open implements fs.FS.
func (v *view) Open(name string) (fs.File, error) {
	info, err := v.stat("open", name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return &viewDir{v: v, name: name, info: info}, nil
	}
	p, _ := v.path("open", name)
	r, err := v.f.Open(v.ctx, p)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &viewFile{ReadCloser: r, info: info}, nil
}

// ReadFile implements fs.ReadFileFS.
func (v *view) ReadFile(name string) ([]byte, error) {
	p, err := v.path("read", name)
	if err != nil {
		return nil, err
	}
	if name == "." {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("is a directory")}
	}
	r, err := v.f.Open(v.ctx, p)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	var b bytes.Buffer
	_, err = b.ReadFrom(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return b.Bytes(), nil
}

// Stat implements fs.StatFS.
func (v *view) Stat(name string) (fs.FileInfo, error) { return v.stat("stat", name) }

func (v *view) stat(op, name string) (viewInfo, error) {
	p, err := v.path(op, name)
	if err != nil {
		return viewInfo{}, err
	}
	if name != "." {
		info, err := v.f.Stat(v.ctx, p)
		if err == nil {
			return viewInfo{name: path.Base(name), size: info.Size, modified: info.LastModified}, nil
		}
		if !errors.Is(err, ErrNotFound) {
			return viewInfo{}, &fs.PathError{Op: op, Path: name, Err: err}
		}
		p.Key += "/"
	}
	// Nothing is a directory unless something is in it; the root always is one.
	page, err := v.f.listPage(v.ctx, p, "/", "")
	if err == nil && name != "." && len(page.Contents)+len(page.CommonPrefixes) == 0 {
		err = fs.ErrNotExist
	}
	if err != nil {
		return viewInfo{}, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return viewInfo{name: path.Base(name), dir: true}, nil
}

// ReadDir implements fs.ReadDirFS.
func (v *view) ReadDir(name string) ([]fs.DirEntry, error) {
	p, err := v.path("readdir", name)
	if err != nil {
		return nil, err
	}
	if name != "." {
		p.Key += "/"
	}
	byName := map[string]viewInfo{}
	for token := ""; ; {
		page, err := v.f.listPage(v.ctx, p, "/", token)
		if err != nil {
			return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
		}
		for _, d := range page.CommonPrefixes {
			base := strings.TrimSuffix(strings.TrimPrefix(aws.ToString(d.Prefix), p.Key), "/")
			if _, object := byName[base]; !object {
				byName[base] = viewInfo{name: base, dir: true}
			}
		}
		for _, o := range page.Contents {
			base := strings.TrimPrefix(aws.ToString(o.Key), p.Key)
			byName[base] = viewInfo{name: base, size: aws.ToInt64(o.Size), modified: aws.ToTime(o.LastModified)}
		}
		if token = aws.ToString(page.NextContinuationToken); token == "" {
			break
		}
	}
	if len(byName) == 0 && name != "." {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	return entriesOf(byName), nil
}

// entriesOf sorts by name and leaves out what cannot be named.
func entriesOf(byName map[string]viewInfo) []fs.DirEntry {
	var entries []fs.DirEntry
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if fs.ValidPath(name) && !strings.Contains(name, "/") && name != "." {
			entries = append(entries, fs.FileInfoToDirEntry(byName[name]))
		}
	}
	return entries
}

// viewFile is an object being read.
type viewFile struct {
	io.ReadCloser
	info viewInfo
}

// Stat implements fs.File.
func (f *viewFile) Stat() (fs.FileInfo, error) { return f.info, nil }

// viewDir is a directory being read.
type viewDir struct {
	v       *view
	name    string
	info    viewInfo
	entries []fs.DirEntry
	listed  bool
}

var _ fs.ReadDirFile = (*viewDir)(nil)

// Stat implements fs.File.
func (d *viewDir) Stat() (fs.FileInfo, error) { return d.info, nil }

// Read implements fs.File.
func (d *viewDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: errors.New("is a directory")}
}

// Close implements fs.File.
func (d *viewDir) Close() error { return nil }

// ReadDir implements fs.ReadDirFile.
func (d *viewDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if !d.listed {
		entries, err := d.v.ReadDir(d.name)
		if err != nil {
			return nil, err
		}
		d.entries, d.listed = entries, true
	}
	if n <= 0 {
		n = len(d.entries)
	} else if len(d.entries) == 0 {
		return nil, io.EOF
	}
	out := d.entries[:min(n, len(d.entries))]
	d.entries = d.entries[len(out):]
	return out, nil
}

// viewInfo is the fs.FileInfo of an object or a directory.
type viewInfo struct {
	name     string
	size     int64
	modified time.Time
	dir      bool
}

func (i viewInfo) Name() string       { return i.name }
func (i viewInfo) Size() int64        { return i.size }
func (i viewInfo) ModTime() time.Time { return i.modified }
func (i viewInfo) IsDir() bool        { return i.dir }
func (i viewInfo) Sys() any           { return nil }

func (i viewInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}
