import { TrustedRoot } from '@sigstore/protobuf-specs';
import { type TrustMaterial, toTrustMaterial } from '@sigstore/verify';
import amdRoots from './data/amd-roots.json' with { type: 'json' };
import firmwareFloors from './data/firmware-floors.json' with { type: 'json' };
import sigstoreRoot from './data/sigstore-root.json' with { type: 'json' };
import type { AmdRoot } from './snp/chip-key.ts';
import type { FirmwareFloor } from './snp/policy.ts';

/** What verification trusts unconditionally. */
export interface TrustAnchors {
  readonly amd: readonly AmdRoot[];
  readonly floors: readonly FirmwareFloor[];
  readonly sigstore: TrustMaterial;
  now(): Date;
}

/**
 * Returns the trust anchors in this repository. No setting and no input changes them. Their sources are listed in
 * docs/adr/0040.
 */
export function loadPinnedAnchors(): TrustAnchors {
  return {
    amd: amdRoots,
    floors: firmwareFloors,
    sigstore: toTrustMaterial(TrustedRoot.fromJSON(sigstoreRoot)),
    now: () => new Date(),
  };
}
