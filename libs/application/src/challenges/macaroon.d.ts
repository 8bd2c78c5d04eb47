declare module 'macaroon' {
  interface Macaroon {
    readonly identifier: Uint8Array;
    readonly signature: Uint8Array;
    addFirstPartyCaveat(condition: string): void;
    /**
     * @param check what is wrong with a condition; null where nothing is
     * @throws Error
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
    /** @throws Error */
    importMacaroon(bytes: Uint8Array): Macaroon;
  };
  export default module;
}
