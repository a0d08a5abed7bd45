import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { defineModule, ServersModule } from 'slipway';
import { CreateStars1795300000000 } from './create-stars.migration.js';
import { Star } from './star.entity.js';
import { StarsController } from './stars.controller.js';
import { StarsService } from './stars.service.js';

declare global {
  interface SlipwayScopes {
    stars: 'read' | 'write';
  }
}

@Module({
  imports: [TypeOrmModule.forFeature([Star]), ServersModule],
  controllers: [StarsController],
  providers: [StarsService],
})
export class StarsModule {}

export default defineModule({
  name: 'stars',
  module: () => StarsModule,
  migrations: [CreateStars1795300000000],
});
