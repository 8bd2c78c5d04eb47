/** The simulated data providers. */
import { apollo } from './apollo.ts';
import { clado } from './clado.ts';
import { companyEnrich } from './company-enrich.ts';
import { exa } from './exa.ts';
import { firecrawl } from './firecrawl.ts';
import { fullEnrich } from './fullenrich.ts';
import { googleAerialView, googleMaps, googleSolar } from './google-maps.ts';
import { hunter } from './hunter.ts';
import { influencersClub } from './influencers-club.ts';
import { minerva } from './minerva.ts';
import { peopleDataLabs } from './people-data-labs.ts';
import { scrapeCreators } from './scrape-creators.ts';
import { serper } from './serper.ts';
import { twit } from './twit.ts';
import type { DataVendor } from './vendor.ts';
import { whitepages } from './whitepages.ts';

export const DATA_VENDORS: readonly DataVendor[] = [
  googleMaps,
  googleSolar,
  googleAerialView,
  apollo,
  fullEnrich,
  peopleDataLabs,
  companyEnrich,
  minerva,
  exa,
  firecrawl,
  clado,
  serper,
  scrapeCreators,
  whitepages,
  hunter,
  influencersClub,
  twit,
];
