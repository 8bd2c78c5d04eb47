/** Google's Places (New), Solar and Aerial View: https://developers.google.com/maps/documentation */
import { refusal } from '../google/errors.ts';
import type { Refusal } from '../router.ts';
import { aerialPicture } from './aerial-image.ts';
import { companyOf, placeOf, proseOf, Seed, timeOf } from './invented.ts';
import {
  type DataVendor,
  type DataVendorRequest,
  type DataVendorResult,
  each,
  type JsonObject,
  numberIn,
  textIn,
} from './vendor.ts';

const FIELD_MASK = 'x-goog-fieldmask';
const MOST_PLACES = 20;
/** Without anything dearer, a place costs what Google calls Pro. */
const PRO_FIELDS: ReadonlySet<string> = new Set([
  'id',
  'name',
  'displayName',
  'formattedAddress',
  'location',
  'types',
  'primaryType',
  'businessStatus',
  'googleMapsUri',
]);

const GOOGLE: Pick<DataVendor, 'keys' | 'refusal' | 'wrongKey'> = {
  keys: [
    { in: 'header', name: 'x-goog-api-key' },
    { in: 'query', name: 'key' },
  ],
  refusal,
  wrongKey: (missing) => {
    if (missing)
      return refusal(403, "Method doesn't allow unregistered callers (callers without established identity).");
    const details = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' };
    return refusal(400, 'API key not valid. Please pass a valid API key.', [details]);
  },
};

export const googleMaps: DataVendor = {
  name: 'google-maps',
  ...GOOGLE,
  lookups: {
    'POST /v1/places:searchText': {
      usd: (asked) => (isDear(asked, 'places.') ? '0.08' : '0.02'),
      billsNothingFound: true,
      answer: (asked) => {
        if (!textIn(asked.fields, 'textQuery')) throw refusal(400, 'Empty text_query.');
        const wanted = Math.min(numberIn(asked.fields, 'pageSize') ?? MOST_PLACES, MOST_PLACES);
        return placesFound(asked, wanted);
      },
    },
    'POST /v1/places:searchNearby': {
      usd: (asked) => (isDear(asked, 'places.') ? '0.08' : '0.02'),
      billsNothingFound: true,
      answer: (asked) => {
        assertCircle(asked.fields);
        const wanted = Math.min(numberIn(asked.fields, 'maxResultCount') ?? MOST_PLACES, MOST_PLACES);
        return placesFound(asked, wanted);
      },
    },
    'GET /v1/places/{placeId}': {
      usd: (asked) => (isDear(asked, '') ? '0.05' : '0.02'),
      answer: (asked) => {
        const mask = maskOf(asked, '');
        if (!/^[\w-]+$/.test(asked.inPath)) throw refusal(400, `Not a valid Place ID: ${asked.inPath}`);
        if (asked.count(1) === 0) throw refusal(404, 'The Place ID is no longer valid.');
        return { body: masked(googlePlace(new Seed(asked.inPath), asked.inPath), mask), results: 1 };
      },
    },
  },
};

export const googleSolar: DataVendor = {
  name: 'google-solar',
  ...GOOGLE,
  lookups: {
    'GET /v1/buildingInsights:findClosest': {
      usd: '0.02',
      answer: (asked) => ({ body: buildingInsights(asked, positionIn(asked)), results: 1 }),
    },
    'GET /v1/dataLayers:get': {
      usd: '0.08',
      answer: (asked) => {
        positionIn(asked);
        const radius = numberIn(asked.fields, 'radiusMeters') ?? 0;
        if (radius <= 0) throw refusal(400, 'radius_meters must be greater than 0.');
        return { body: dataLayers(asked), results: 1 };
      },
    },
    'GET /v1/geoTiff:get': {
      usd: '0.05',
      answer: (asked) => {
        const id = textIn(asked.fields, 'id');
        if (!id) throw refusal(400, 'id must be specified.');
        assertFound(asked);
        return { body: {}, file: { type: 'image/tiff', bytes: aerialPicture(id) }, results: 1 };
      },
    },
  },
};

export const googleAerialView: DataVendor = {
  name: 'google-aerial-view',
  ...GOOGLE,
  lookups: {
    'GET /v1/videos:lookupVideo': {
      usd: '0.02',
      answer: ({ fields, ...asked }) => {
        const which = textIn(fields, 'videoId') ?? textIn(fields, 'address');
        if (!which) throw refusal(400, 'Either video_id or address must be specified.');
        assertFound({ fields, ...asked });
        const uri = (kind: string) => `https://videos.example/${asked.seed.hex(12)}/${kind}`;
        const uris = Object.fromEntries(
          ['IMAGE', 'MP4_LOW', 'MP4_HIGH'].map((kind) => [
            kind,
            { landscapeUri: uri(`${kind}/landscape`), portraitUri: uri(`${kind}/portrait`) },
          ]),
        );
        const metadata = { videoId: asked.seed.hex(22), captureDate: dateOf(asked.seed), duration: '40s' };
        return { body: { uris, state: 'ACTIVE', metadata }, results: 1 };
      },
    },
    'POST /v1/videos:renderVideo': {
      usd: '0.01',
      answer: (asked) => {
        if (!textIn(asked.fields, 'address')) throw refusal(400, 'address must be specified.');
        assertFound(asked);
        return { body: { state: 'PROCESSING', metadata: { videoId: asked.seed.hex(22) } }, results: 1 };
      },
    },
  },
};

/** Fields that are asked for, without `prefix`; there is no default. */
function maskOf({ headers }: DataVendorRequest, prefix: string): readonly string[] {
  const mask = String(headers[FIELD_MASK] ?? '');
  if (mask === '')
    throw refusal(
      400,
      "FieldMask is a required parameter. See https://cloud.google.com/apis/docs/system-parameters on how to provide it as a $fields or fields URL parameter, or as a HTTP/gRPC header 'X-Goog-FieldMask'.",
    );
  return mask.split(',').map((path) => (path.startsWith(prefix) ? path.slice(prefix.length) : path));
}

function isDear(asked: DataVendorRequest, prefix: string): boolean {
  return maskOf(asked, prefix).some((path) => path !== 'nextPageToken' && !PRO_FIELDS.has(path.split('.')[0] ?? ''));
}

function masked(place: JsonObject, mask: readonly string[]): JsonObject {
  if (mask.includes('*')) return place;
  const names = new Set(mask.map((path) => path.split('.')[0]));
  return Object.fromEntries(Object.entries(place).filter(([name]) => names.has(name)));
}

function placesFound(asked: DataVendorRequest, wanted: number): DataVendorResult {
  const mask = maskOf(asked, 'places.');
  const count = asked.count(wanted);
  const places = each(asked, count, (seed) => masked(googlePlace(seed, `ChIJ${seed.hex(23)}`), mask));
  const next = mask.includes('*') || mask.includes('nextPageToken');
  const more = next && count >= MOST_PLACES ? { nextPageToken: asked.seed.hex(40) } : {};
  return { body: count === 0 ? {} : { places, ...more }, results: count };
}

function googlePlace(seed: Seed, id: string): JsonObject {
  const company = companyOf(seed);
  const place = placeOf(seed);
  return {
    name: `places/${id}`,
    id,
    types: ['cafe', 'food', 'point_of_interest', 'establishment'],
    primaryType: 'cafe',
    displayName: { text: `The ${company.name}`, languageCode: 'en' },
    formattedAddress: place.address,
    location: { latitude: place.latitude, longitude: place.longitude },
    businessStatus: 'OPERATIONAL',
    googleMapsUri: `https://maps.example/?cid=${seed.digits()}`,
    rating: 1 + (seed.number(3) % 41) / 10,
    userRatingCount: seed.number(4) % 2_000,
    priceLevel: 'PRICE_LEVEL_MODERATE',
    internationalPhoneNumber: company.phone,
    websiteUri: `https://${company.domain}/`,
    regularOpeningHours: { openNow: true, weekdayDescriptions: ['Monday: 9:00 AM – 5:00 PM'] },
    editorialSummary: { text: proseOf(seed, 12), languageCode: 'en' },
    reviews: [{ name: `places/${id}/reviews/1`, rating: 4, text: { text: proseOf(seed, 20), languageCode: 'en' } }],
  };
}

function assertCircle({ locationRestriction }: JsonObject): void {
  const { circle } = (locationRestriction ?? {}) as {
    readonly circle?: { readonly center?: { readonly latitude?: unknown }; readonly radius?: unknown };
  };
  if (typeof circle?.center?.latitude !== 'number' || typeof circle.radius !== 'number')
    throw refusal(400, 'location_restriction.circle must be set.');
}

interface Position {
  readonly latitude: number;
  readonly longitude: number;
}

function positionIn(asked: DataVendorRequest): Position {
  const latitude = numberIn(asked.fields, 'location.latitude');
  const longitude = numberIn(asked.fields, 'location.longitude');
  if (latitude === undefined || longitude === undefined) throw refusal(400, 'Location must be specified.');
  if (Math.abs(latitude) > 90 || Math.abs(longitude) > 180) throw refusal(400, 'Location is out of range.');
  assertFound(asked);
  return { latitude, longitude };
}

function assertFound(asked: DataVendorRequest): void {
  if (asked.count(1) === 0) throw notFound();
}

function notFound(): Refusal {
  return refusal(404, 'Requested entity was not found.');
}

function dateOf(seed: Seed) {
  const [year = 0, month = 0, day = 0] = timeOf(seed).slice(0, 10).split('-').map(Number);
  return { year, month, day };
}

function buildingInsights({ seed }: DataVendorRequest, center: Position) {
  const { postcode, region } = placeOf(seed);
  const areaMeters2 = 40 + (seed.number(5) % 200);
  return {
    name: `buildings/ChIJ${seed.hex(23)}`,
    center,
    imageryDate: dateOf(seed),
    imageryProcessedDate: dateOf(seed),
    postalCode: postcode,
    administrativeArea: region,
    regionCode: 'XT',
    solarPotential: {
      maxArrayPanelsCount: 4 + (seed.number(6) % 60),
      maxArrayAreaMeters2: areaMeters2,
      maxSunshineHoursPerYear: 900 + (seed.number(7) % 1_000),
      carbonOffsetFactorKgPerMwh: 428.9,
      wholeRoofStats: { areaMeters2, sunshineQuantiles: [350, 1_200, 1_500], groundAreaMeters2: areaMeters2 * 0.8 },
      roofSegmentStats: [{ pitchDegrees: 11.3, azimuthDegrees: 269.7, center }],
      panelCapacityWatts: 400,
      panelLifetimeYears: 20,
    },
    imageryQuality: 'HIGH',
  };
}

function dataLayers({ seed }: DataVendorRequest) {
  const url = (of: string) => `https://solar.example/v1/geoTiff:get?id=${seed.branch(of).hex(32)}`;
  return {
    imageryDate: dateOf(seed),
    imageryProcessedDate: dateOf(seed),
    dsmUrl: url('dsm'),
    rgbUrl: url('rgb'),
    maskUrl: url('mask'),
    annualFluxUrl: url('annual'),
    monthlyFluxUrl: url('monthly'),
    hourlyShadeUrls: Array.from({ length: 12 }, (_, month) => url(`shade-${month}`)),
    imageryQuality: 'HIGH',
  };
}
