declare module 'macaroon' {
  interface Macaroon {
    readonly identifier: Uint8Array;
    exportBinary(): Uint8Array;
    /**
     * @param check returns what is wrong with a condition; null if nothing is
     * @throws Error if the signature is invalid, or `check` rejects a condition
     */
    verify(rootKey: Uint8Array, check: (condition: string) => string | null): void;
  }

  const module: {
    /** @throws Error if the bytes are not a macaroon */
    importMacaroon(bytes: Uint8Array): Macaroon;
  };
  export default module;
}
