import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { defineModule, roleModule, ServersModule } from '@slipway/module';
import { CreateStars1795300000000 } from './create-stars.migration.js';
import { Star } from './star.entity.js';
import { StarsController } from './stars.controller.js';
import { StarsRepository } from './stars.repository.js';
import { StarsService } from './stars.service.js';

declare global {
  interface SlipwayScopes {
    stars: 'read' | 'write';
  }
}

@Module({})
export class StarsModule {
  static readonly forRoles = roleModule((env) => ({
    module: StarsModule,
    api: {
      imports: [TypeOrmModule.forFeature([Star]), ServersModule.forRoles(env)],
      controllers: [StarsController],
      providers: [StarsRepository, StarsService],
    },
  }));
}

export default defineModule({
  name: 'stars',
  apiVersion: 1,
  module: StarsModule.forRoles,
  migrations: [CreateStars1795300000000],
});
