import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { COMPILED_CLIENTS } from './compiled.ts';

const SCRIPTS = path.join(import.meta.dirname, 'scripts');
const MODULES = {
  Go: { file: 'go/go.mod', format: (_: string, module: string, version: string) => `\t${module} v${version}\n` },
  Rust: {
    file: 'rust/Cargo.toml',
    format: (name: string, crate: string, version: string) =>
      `\n${name} = { version = "=${version}"${crate === name ? '' : `, package = "${crate}"`}`,
  },
};

test.each(COMPILED_CLIENTS.map(({ name, program }) => ({ name, ...program })))(
  '$name has a program and a pinned version',
  ({ name, language, package: client = '', version = '' }) => {
    const { file, format } = MODULES[language as keyof typeof MODULES];
    expect(readFileSync(path.join(SCRIPTS, file), 'utf8')).toContain(format(name, client, version));
    const program = language === 'Go' ? `go/${name}/main.go` : `rust/src/bin/${name}.rs`;
    expect(existsSync(path.join(SCRIPTS, program))).toBe(true);
  },
);
