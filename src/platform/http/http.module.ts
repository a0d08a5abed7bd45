import { Global, Module } from '@nestjs/common';
import { BodyBudget } from './body/body-budget.js';
import { SignedUrls } from './signed-urls.js';

/** Providers for routes of several modules. */
@Global()
@Module({ providers: [BodyBudget, SignedUrls], exports: [BodyBudget, SignedUrls] })
export class HttpModule {}
