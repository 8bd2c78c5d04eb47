export type { AccountCommand, HoldPart, HoldTerms } from './account/commands.ts';
export { accountDecider } from './account/decide.ts';
export { accountCodec } from './account/snapshot.ts';
export { type Account, bytesOfAccount, reachable, spendable } from './account/state.ts';
export { PAID } from './autotopup/backoff.ts';
export { type AutoTopupCommand, autoTopupDecider, type DailyLimits, type RequestMade } from './autotopup/decide.ts';
export type { AutoTopup } from './autotopup/state.ts';
export {
  type AutoTopupQuestion,
  type AutoTopupSend,
  type AutoTopupStep,
  autoTopupWorkflow,
  type PaymentWish,
} from './autotopup/workflow.ts';
export { type ChallengeClaim, type ChallengeCommand, challengeDecider } from './challenge/decide.ts';
export { type Challenge, type ChallengePhase, phaseOf } from './challenge/state.ts';
export { type ChallengeStep, challengeWorkflow } from './challenge/workflow.ts';
export {
  type Attempt,
  type Charge,
  chargeOf,
  type Item,
  itemOf,
  namedByVendor,
  type PriceLine,
  type Sold,
  type Tariff,
  type Use,
} from './charge.ts';
export * from './events.ts';
export { AT_FAULT, type HoldCommand, type Holds, howEnded, type OpenHold } from './holds.ts';
export { instantIn } from './instant.ts';
export { type Key, type KeyRecord, MAX_KEY_NAME, MIN_KEY_LIMIT, recordOf } from './keys.ts';
export { afterCharge, type CapWindow, movedTo, newWindow, nextReset, windowAt } from './limit-window.ts';
export { assertBalanced, type LedgerAccount, type Posting, postings } from './postings.ts';
export { bytesOfPriceList, type PublishPriceList, priceListDecider } from './price-list.ts';
export { MAX_REFUSALS_PER_DAY, type NoteRefusal, refusalsDecider, refusalsOf } from './refused-requests.ts';
export type { RejectionCode } from './rejections.ts';
export {
  ALL_UNITS,
  type Amounts,
  addedUsage,
  affordable,
  boundOf,
  costOf,
  NO_USAGE,
  type Price,
  type PriceJson,
  priceFromJson,
  priceOf,
  priceToJson,
  quantityOf,
  soldFor,
  type Terms,
  type Unit,
  UnpricedUnit,
  type Usage,
  usageToJson,
} from './tariff.ts';
export { type CoinAccount, type CoinPosting, coinPostings } from './topup/coin-postings.ts';
export {
  type Coin,
  type CoinTerms,
  type RateNames,
  unitsFor,
  unitsIn,
  wholeCoins,
  worth,
} from './topup/coins.ts';
export {
  type Change,
  isLate,
  type Payment,
  paymentKey,
  type Topup,
  type TopupCommand,
  topupDecider,
} from './topup/decide.ts';
export type { PaymentMethod, PaymentTerms } from './topup/methods.ts';
export { type AllowInvoice, openInvoicesDecider } from './topup/open-invoices.ts';
export {
  type AgreedRate,
  type BelievedRate,
  believe,
  type Quote,
  type RateCase,
  type RateDoubt,
  type RateLimits,
  remembered,
} from './topup/rates.ts';
export { type PaymentsWanted, type TopupSend, type TopupStep, topupWorkflow } from './topup/workflow.ts';
export { KNOWN_FACTS } from './upcasters/index.ts';
export { type SubmissionMade, type VideoCommand, videoDecider } from './video/decide.ts';
export { endpointOf, type Video, type VideoPhase } from './video/state.ts';
export {
  type VideoHandover,
  type VideoQuestion,
  type VideoSend,
  type VideoStep,
  videoWorkflow,
} from './video/workflow.ts';
