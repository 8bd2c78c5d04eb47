/**
 * Ends the process with one sentence if its Node is not supported. Programs import this module first, as
 * `#foundation/node-version`: modules are evaluated in the order of their imports, and libraries that are evaluated later
 * fail on an older Node with a stack trace. So this module has no imports, and only syntax that older versions know.
 */

/**
 * Whether programs run on this version of Node: `engines` of package.json. The lower limits are those of `@sigstore/verify`.
 * Node 22, which it also admits, has no `AsyncDisposableStack`.
 * @param version such as 24.21.0
 */
export function isSupportedNode(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major >= 26 || (major === 24 && minor >= 15);
}

const { node } = process.versions;
if (!isSupportedNode(node)) {
  process.stderr.write(
    `Countinghouse requires Node 24.15 or a later Node 24, or Node 26 or later. This is Node ${node}.\n`,
  );
  process.exit(1);
}
