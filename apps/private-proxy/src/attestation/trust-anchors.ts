import { TrustedRoot } from '@sigstore/protobuf-specs';
import { type TrustMaterial, toTrustMaterial } from '@sigstore/verify';
import amdRoots from './data/amd-roots.json' with { type: 'json' };
import firmwareFloors from './data/firmware-floors.json' with { type: 'json' };
import sigstoreRoot from './data/sigstore-root.json' with { type: 'json' };
import type { AmdRoot } from './snp/chip-key.ts';
import type { FirmwareFloor } from './snp/policy.ts';

/** What everything that is proven rests on. */
export interface TrustAnchors {
  readonly amd: readonly AmdRoot[];
  readonly floors: readonly FirmwareFloor[];
  readonly sigstore: TrustMaterial;
  now(): Date;
}

/** What this program comes with: no setting and nothing that is sent changes it. Where it is from is in docs/adr/0040. */
export function loadPinnedAnchors(): TrustAnchors {
  return {
    amd: amdRoots,
    floors: firmwareFloors,
    sigstore: toTrustMaterial(TrustedRoot.fromJSON(sigstoreRoot)),
    now: () => new Date(),
  };
}
