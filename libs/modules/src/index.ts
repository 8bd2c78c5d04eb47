export { CatalogueModule } from './catalogue.module.ts';
export { openContext, rootOf } from './container.ts';
export { PayingModule } from './paying.module.ts';
export { PaymentsModule } from './payments.module.ts';
export { ProvidersModule } from './providers.module.ts';
export { openRole, Role, runRole } from './role.ts';
export { SecretsModule } from './secrets.module.ts';
export { StoresModule } from './stores.module.ts';
export { WalletsModule } from './wallets.module.ts';
