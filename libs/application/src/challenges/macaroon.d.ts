declare module 'macaroon' {
  interface Macaroon {
    readonly identifier: Uint8Array;
    readonly signature: Uint8Array;
    addFirstPartyCaveat(condition: string): void;
    /**
     * @param check returns what is wrong with a condition; null if nothing is
     * @throws Error if the signature is invalid, or `check` rejects a condition
     */
    verify(rootKey: Uint8Array, check: (condition: string) => string | null): void;
  }

  interface Given {
    readonly version: 2;
    readonly identifier: Uint8Array;
    readonly location: string;
    readonly rootKey: Uint8Array;
  }

  const module: {
    newMacaroon(given: Given): Macaroon;
    /** @throws Error if the bytes are not a macaroon */
    importMacaroon(bytes: Uint8Array): Macaroon;
  };
  export default module;
}
