/** Limit of the path that an error message quotes. */
const MAX_QUOTED_PATH_CHARACTERS = 100;

/** Returns a path as an error message quotes it, without the query, which may contain secrets. */
export function quotePath(url: string): string {
  const [path = ''] = url.split('?');
  return path.length > MAX_QUOTED_PATH_CHARACTERS ? `${path.slice(0, MAX_QUOTED_PATH_CHARACTERS)}…` : path;
}
