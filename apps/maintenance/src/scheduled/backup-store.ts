/** The place of scheduled backups: a directory or a bucket. The path of a file is `<backup>/<file>.age`. */
export interface BackupStore {
  /** Returns the paths of the files of all backups, also of incomplete ones, in any order. Others may be among them. */
  list(): Promise<readonly string[]>;
  /** Stores a file. It has its path only once it is complete, and then survives a power failure. */
  write(path: string, content: AsyncIterable<Uint8Array>): Promise<void>;
  read(path: string): AsyncIterable<Uint8Array>;
  remove(paths: readonly string[]): Promise<void>;
  close(): void;
}
